#include "pkg/env/real/runtime.h"

#include <openssl/crypto.h>
#include <signal.h>
#include <sys/resource.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <utility>

#include "pkg/env/real/log_writer.h"
#include "pkg/env/real/real_blocking.h"
#include "pkg/env/real/real_fs.h"
#include "pkg/env/real/real_net.h"
#include "pkg/env/real/real_process.h"
#include "pkg/env/real/real_timers.h"
#include "pkg/env/real/system.h"

namespace narad {
namespace {

// An io_context whose queued handlers can be destroyed while their owners still live.
class LoopContext : public asio::io_context {
 public:
  LoopContext() : asio::io_context(1) {}
  using asio::io_context::shutdown;
};

// Once per process; all of it may be repeated without harm.
void prepare_process() {
  ::signal(SIGPIPE, SIG_IGN);
  // A file that OpenSSL would read on its own is a door we do not know.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  // Thousands of connections and segments: take what we are allowed.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
}

}  // namespace

struct Runtime::Impl {
  explicit Impl(const RuntimeOptions& options)
      : log(options.log, clock),
        process(log),
        timers(context),
        net(context),
        signals(context, parking, options.handle_signals),
        blocking(options.blocking_threads),
        env{context.get_executor(),
            clock,
            timers,
            random,
            fs,
            blocking,
            net,
            log,
            process,
            signals,
            parking} {}

  ~Impl() { shutdown(); }

  // As in simulation: nothing comes in any more, then all that waits is destroyed while the doors
  // still stand; the doors go later.
  void shutdown() {
    if (std::exchange(is_shut_down, true)) return;
    blocking.stop();
    net.stop();
    parking.drop_all();
    context.shutdown();
  }

  bool is_shut_down = false;
  LoopContext context;
  RealClock clock;
  LogWriter log;
  RealProcess process;
  RealRandom random;
  RealTimers timers;
  RealFs fs;
  RealNet net;
  Parking parking;
  RealSignals signals;
  RealBlocking blocking;
  Env env;
};

Runtime::Runtime(RuntimeOptions options) {
  prepare_process();
  impl_ = std::make_unique<Impl>(options);
}

Runtime::~Runtime() = default;

Env& Runtime::env() { return impl_->env; }

int Runtime::run(Task<int> main) {
  std::optional<int> code;
  auto& context = impl_->context;
  auto done = [&](std::exception_ptr error, int value) {
    code = value;
    if (error) {
      code = kExitFailure;
      std::string what = "an unknown exception";
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& e) {
        what = e.what();
      } catch (...) {
      }
      NARAD_LOG_ERROR(impl_->log, "main task failed", {"error", what});
    }
    context.stop();
  };
  context.restart();
  asio::co_spawn(context, std::move(main), std::move(done));
  context.run();
  return code.value_or(kExitFailure);
}

void Runtime::shutdown() { impl_->shutdown(); }

void Runtime::set_log_level(LogLevel level) { impl_->log.set_level(level); }

}  // namespace narad

#include "pkg/env/real/real_process.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>

#include "pkg/base/text.h"

namespace narad {

void RealProcess::exit(int code, std::string_view why) {
  NARAD_LOG(log_, code == kExitOk ? LogLevel::info : LogLevel::error, "process exits",
            {"code", code}, {"why", why});
  log_.flush(std::chrono::milliseconds(500));
  ::_exit(code);
}

std::string RealProcess::describe() const {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return cat("pid ", ::getpid());
  return cat("pid ", ::getpid(), " on ", host.data());
}

RealSignals::RealSignals(asio::io_context& context, Parking& parking, bool handle)
    : signals_(context), parking_(parking), handle_(handle) {
  if (!handle) return;
  for (int number : {SIGTERM, SIGINT, SIGHUP}) signals_.add(number);
}

void RealSignals::wait(SignalHandler handler) {
  if (!handle_) {
    // Not in the set: a set without signals keeps its waits past the shutdown of its context.
    auto executor = asio::get_associated_executor(handler);
    auto slot = asio::get_associated_cancellation_slot(handler);
    auto parked = [handler = std::move(handler)](error_code ec) mutable {
      std::move(handler)(ec, Signal::terminate);
    };
    parking_.park(VoidHandler(
        asio::bind_cancellation_slot(slot, asio::bind_executor(executor, std::move(parked)))));
    return;
  }
  auto executor = asio::get_associated_executor(handler);
  auto slot = asio::get_associated_cancellation_slot(handler);
  auto done = [handler = std::move(handler)](error_code ec, int number) mutable {
    std::move(handler)(ec, number == SIGHUP ? Signal::reload : Signal::terminate);
  };
  signals_.async_wait(
      asio::bind_cancellation_slot(slot, asio::bind_executor(executor, std::move(done))));
}

}  // namespace narad

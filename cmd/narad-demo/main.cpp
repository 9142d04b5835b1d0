// The demo: real files through a broker that is killed twice, and an account of every one of them.
//
//   narad-demo [PATH OF narad] [--files N]
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "cmd/narad-demo/book.h"
#include "cmd/narad/e2e/child.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/client/client.h"
#include "pkg/env/real/runtime.h"

namespace narad::demo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kStatusFile = "/var/lib/dpkg/status";
constexpr std::size_t kWorkers = 16;
constexpr Nanos kRetryPause = milliseconds(20);
constexpr Nanos kPoll = seconds(1);
constexpr Nanos kPatience = seconds(90);  // longer than a lease

void say(std::string_view what, std::string_view text) {
  std::string column(what);
  column.resize(10, ' ');
  std::cout << "  " << column << text << std::endl;
}

std::string mib(std::uint64_t bytes) { return format_bytes(bytes); }
std::string duration_text(Nanos d) { return format_duration(std::chrono::round<milliseconds>(d)); }
std::uint64_t per_second(std::uint64_t n, Nanos d) {
  double s = std::chrono::duration<double>(d).count();
  return s > 0 ? static_cast<std::uint64_t>(static_cast<double>(n) / s) : 0;
}

std::string slurp(std::string_view path) {
  std::ifstream in{std::string(path), std::ios::binary};
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// The broker as a process: started, killed, started again on the same port and directory. Used from
// one blocking job at a time.
class BrokerProcess {
 public:
  BrokerProcess(std::string binary, std::string data_dir)
      : binary_(std::move(binary)), data_dir_(std::move(data_dir)) {}

  // Whether it became ready.
  Result<void> start() {
    e2e::ChildOptions options;
    options.env["NARAD_SECURITY_ENABLED"] = "false";
    child_.reset();
    child_ = std::make_unique<e2e::Child>(
        std::vector<std::string>{binary_, "serve", "--addr", cat("127.0.0.1:", port_), "--data-dir",
                                 data_dir_, "--log-format", "json"},
        options);
    auto line = child_->line_with("\"node ready\"", seconds(60));
    std::size_t at = line ? line->find("\"listen\":\"") : std::string::npos;
    if (at == std::string::npos) {
      return Error(Errc::unavailable,
                   cat("the broker did not start:\n", child_->out(), child_->err()));
    }
    std::string listen = line->substr(at + 10, line->find('"', at + 10) - at - 10);
    port_ = parse_number<std::uint16_t>(listen.substr(listen.rfind(':') + 1)).value_or(0);
    return ok();
  }
  Result<void> kill_and_start() {
    child_->kill9();
    return start();
  }
  // SIGTERM, and an end with status 0.
  Result<void> stop() {
    child_->signal(SIGTERM);
    auto exit = child_->wait(seconds(20));
    if (exit && exit->code == 0) return ok();
    return Error(Errc::internal, cat("the broker did not end in order",
                                     exit ? cat(": status ", exit->code, ", signal ", exit->signal)
                                          : std::string(" within 20 s"),
                                     "\n", child_->out(), child_->err()));
  }
  std::uint16_t port() const { return port_; }
  long pid() const { return child_->pid(); }

 private:
  std::string binary_;
  std::string data_dir_;
  std::uint16_t port_ = 0;
  std::unique_ptr<e2e::Child> child_;
};

// One run. Lives in main()'s frame.
class Demo {
 public:
  Demo(Env& env, BrokerProcess& broker, const std::vector<Item>& items)
      : env_(env),
        broker_(broker),
        items_(items),
        book_(items),
        client_(env, cat("http://127.0.0.1:", broker.port()), "", "", pool()),
        done_(env) {}

  Task<int> run() {
    for (const char* topic : {"packages", "files"}) {
      client::NewTopic fresh;
      fresh.name = topic;
      fresh.partitions = 6;
      auto created = co_await client_.create_topic(fresh);
      if (!created) co_return fail(created.error());
    }
    auto produced = co_await produce();
    if (!produced) co_return fail(produced.error());
    auto consumed = co_await consume();
    if (!consumed) co_return fail(consumed.error());
    co_return report();
  }

 private:
  static client::ClientOptions pool() {
    client::ClientOptions options;
    options.pool.idle_max = 2 * kWorkers;
    options.timeout = seconds(10);
    return options;
  }
  static int fail(const Error& error) {
    std::cerr << "narad-demo: " << error.text() << std::endl;
    return 1;
  }

  Task<Result<void>> crash(std::string_view when) {
    long old = broker_.pid();
    Nanos begin = env_.clock.mono();
    BrokerProcess* broker = &broker_;
    auto job = [broker] { return broker->kill_and_start(); };
    auto restarted = co_await blocking(env_, "restart", job);
    if (!restarted) co_return restarted.error();
    say("kill -9", cat("pid ", old, " ", when, "; ready again as pid ", broker_.pid(), " after ",
                       duration_text(env_.clock.mono() - begin)));
    co_return ok();
  }

  Task<void> counted(Task<void> work) {
    co_await std::move(work);
    if (--running_ == 0) done_.notify_all();
  }
  // Runs kWorkers of `worker`, and kills the broker once `half` says so.
  Task<Result<void>> with_crash(Task<void> (Demo::*worker)(), bool (Demo::*half)() const,
                                std::string_view when) {
    running_ = kWorkers;
    TaskGroup group(env_);
    for (std::size_t i = 0; i < kWorkers; ++i) group.spawn("worker", counted((this->*worker)()));
    Result<void> outcome = ok();
    while (running_ > 0 && !(this->*half)()) co_await done_.wait_for(milliseconds(2));
    if (running_ > 0) outcome = co_await crash(when);
    while (outcome && running_ > 0) co_await done_.wait();
    co_await group.stop();
    co_return outcome;
  }

  bool half_sent() const { return accepted_ >= items_.size() / 2; }
  bool half_acked() const { return acked_ >= items_.size() / 2; }

  // Sends item after item; one that was not answered is sent again, since it may not be there.
  Task<void> produce_worker() {
    while (next_ < items_.size()) {
      std::size_t i = next_++;
      client::ProduceOptions options;
      options.key = items_[i].key;
      for (;;) {
        auto sent = co_await client_.produce(items_[i].topic, items_[i].payload, options);
        book_.sent(i, sent.has_value());
        if (sent) break;
        co_await sleep_for(env_, kRetryPause);
      }
      ++accepted_;
    }
  }
  Task<Result<void>> produce() {
    Nanos begin = env_.clock.mono();
    NARAD_CO_TRY(co_await with_crash(&Demo::produce_worker, &Demo::half_sent,
                                     cat("with half of the messages accepted")));
    Nanos took = env_.clock.mono() - begin;
    say("produce", cat(accepted_, " messages, ", mib(bytes_of(items_)), " accepted in ",
                       duration_text(took), " (", per_second(accepted_, took), " msg/s, ",
                       mib(per_second(bytes_of(items_), took)), "/s, the crash included)"));
    co_return ok();
  }

  Task<void> consume_worker() {
    std::string topic = consumers_++ % 2 == 0 ? "packages" : "files";
    client::ConsumeOptions options;
    options.wait = kPoll;
    while (!finished()) {
      auto messages = co_await client_.consume(topic, options);
      if (!messages) {
        co_await sleep_for(env_, kRetryPause);
        continue;
      }
      for (const client::Received& m : messages.value()) {
        last_delivery_ = env_.clock.mono();
        book_.delivered(m.topic, m.key, m.payload, m.partition.value(), m.offset.value());
        auto acked = co_await client_.ack(topic, m.receipt_handle);
        if (acked) ++acked_;
      }
    }
  }
  // All is there, and a quiet moment has shown that no copy follows; or patience ran out.
  bool finished() const {
    Nanos quiet = env_.clock.mono() - last_delivery_;
    return (book_.all_delivered() && quiet > 2 * kPoll) || quiet > kPatience;
  }
  Task<Result<void>> consume() {
    Nanos begin = env_.clock.mono();
    last_delivery_ = begin;
    NARAD_CO_TRY(co_await with_crash(&Demo::consume_worker, &Demo::half_acked,
                                     "with half of the messages acked"));
    Nanos took = last_delivery_ - begin;
    say("consume", cat(acked_, " messages consumed and acked in ", duration_text(took), " (",
                       per_second(acked_, took), " msg/s, the crash included)"));
    co_return ok();
  }

  int report() {
    Totals t = book_.totals();
    say("compared", cat(t.delivered, " messages, ", mib(t.delivered_bytes),
                        ": every one byte for byte what was sent"));
    say("duplicate", cat(t.duplicates, " deliveries: ", t.duplicates_resent,
                         " stored twice, since the crash took the answer and the message was sent "
                         "again; ",
                         t.duplicates_unacked,
                         " handed out again, since the crash came before their ack was on disk"));
    say("damaged", cat(t.damaged));
    say("lost", cat(t.lost));
    bool good = t.lost == 0 && t.damaged == 0 && t.delivered == items_.size();
    std::cout << (good ? "nothing lost" : "FAILED") << std::endl;
    return good ? 0 : 1;
  }

  Env& env_;
  BrokerProcess& broker_;
  const std::vector<Item>& items_;
  Book book_;
  Client client_;
  Event done_;
  std::size_t running_ = 0;
  std::size_t next_ = 0;
  std::size_t consumers_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t acked_ = 0;
  Nanos last_delivery_{0};
};

int run(const std::string& binary, std::size_t files) {
  std::vector<Item> items = package_items(slurp(kStatusFile), "packages");
  std::uint64_t text_bytes = bytes_of(items);
  std::size_t packages = items.size();
  std::vector<Item> binaries = binary_items({"/usr/share/doc", "/usr/lib"}, files, "files");
  std::uint64_t binary_bytes = bytes_of(binaries);
  // Mixed, so that the crash meets both kinds.
  std::size_t every = packages / (binaries.size() + 1) + 1;
  for (std::size_t i = 0; i < binaries.size(); ++i) {
    auto at = std::min(items.size(), (i + 1) * every + i);
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), std::move(binaries[i]));
  }
  if (items.empty()) {
    std::cerr << "narad-demo: found neither " << kStatusFile << " nor binary files" << std::endl;
    return 1;
  }
  std::cout << "narad demo: real files through a broker that is killed twice" << std::endl;
  say("input", cat(packages, " package descriptions (", mib(text_bytes), ", text), ",
                   items.size() - packages, " binary files (", mib(binary_bytes), ")"));
  e2e::TempDir directory;
  BrokerProcess broker(binary, directory / "data");
  if (auto started = broker.start(); !started) {
    std::cerr << "narad-demo: " << started.error().text() << std::endl;
    return 1;
  }
  say("broker", cat("pid ", broker.pid(), " on http://127.0.0.1:", broker.port(), ", data in ",
                    directory / "data"));
  RuntimeOptions options;
  options.log.level = LogLevel::error;
  options.log.fd = 2;
  // Outlives the broker: a restarted one is the child of a thread of the runtime.
  Runtime runtime(options);
  Demo demo(runtime.env(), broker, items);
  int status = runtime.run(demo.run());
  if (auto stopped = broker.stop(); !stopped) {
    std::cerr << "narad-demo: " << stopped.error().text() << std::endl;
    return 1;
  }
  return status;
}

}  // namespace
}  // namespace narad::demo

int main(int argc, char** argv) {
  // The binary of the same build.
  std::string binary =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../narad/narad";
  std::size_t files = 300;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--files" && i + 1 < argc) {
      files = narad::parse_number<std::size_t>(argv[++i]).value_or(files);
    } else if (!word.starts_with('-')) {
      binary = word;
    } else {
      std::cerr << "usage: narad-demo [PATH OF narad] [--files N]" << std::endl;
      return 2;
    }
  }
  return narad::demo::run(binary, files);
}

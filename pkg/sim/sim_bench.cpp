// How fast the simulation itself is: events and handlers a second of three busy nodes, and syncs a
// second of the disk. Prints numbers for comparison on one machine; asserts nothing.
#include <chrono>
#include <cstdio>

#include "pkg/async/stream_io.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/sim/machine.h"

namespace narad::sim {
namespace {

using namespace std::chrono_literals;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Busy {
 public:
  Busy(Env& env, std::string peer) : env_(env), peer_(std::move(peer)), group_(env), event_(env) {
    for (int i = 0; i < 5; ++i) group_.spawn("ticker", ticker());
    for (int i = 0; i < 5; ++i) group_.spawn("waiter", waiter());
    for (int i = 0; i < 3; ++i) group_.spawn("writer", writer());
    group_.spawn("server", server());
    for (int i = 0; i < 3; ++i) group_.spawn("client", client());
  }

 private:
  Task<void> ticker() {
    for (;;) {
      co_await sleep_for(env_, 1ms);
      event_.notify_all();
    }
  }
  Task<void> waiter() {
    for (;;) (void)co_await event_.wait_for(500us);
  }
  Task<void> writer() {
    for (;;) {
      auto job = [&fs = env_.fs]() -> Result<> {
        NARAD_TRY(auto file, fs.open("/f", OpenMode::create));
        NARAD_TRY(write_all(*file, as_bytes("hello"), 0));
        return file->datasync();
      };
      (void)co_await blocking(env_, "write", std::move(job));
    }
  }
  Task<void> session(std::unique_ptr<Stream> stream) {
    std::array<char, 512> buffer;
    for (;;) {
      auto [ec, n] = co_await read_some(*stream, asio::buffer(buffer));
      if (ec) co_return;
      const error_code failed =
          co_await write_all(*stream, buffers_of(std::string_view(buffer.data(), n)));
      if (failed) co_return;
    }
  }
  Task<void> server() {
    auto listener = env_.net.listen(Endpoint{"", 80});
    auto owned = std::move(listener.value());
    for (;;) {
      auto stream = co_await accept(*owned);
      group_.spawn("session", session(std::move(stream)));
    }
  }
  Task<void> exchange(Stream& stream) {
    std::string back(100, ' ');
    (void)co_await write_all(stream, buffers_of(back));
    (void)co_await read_exactly(stream, asio::buffer(back.data(), back.size()));
  }
  Task<void> client() {
    co_await sleep_for(env_, 10ms);
    auto stream = co_await connect(env_, Endpoint{peer_, 80});
    for (;;) {
      auto task = exchange(*stream);
      (void)co_await finishes_within(env_, 1s, std::move(task));
    }
  }

  Env& env_;
  const std::string peer_;
  TaskGroup group_;
  Event event_;
};

void nodes() {
  const auto start = std::chrono::steady_clock::now();
  Sim sim(1);
  SimNet net(sim);
  Machine a(sim, net, 0, "a"), b(sim, net, 1, "b"), c(sim, net, 2, "c");
  a.boot([](Env& env) { return std::make_shared<Busy>(env, "b"); });
  b.boot([](Env& env) { return std::make_shared<Busy>(env, "c"); });
  c.boot([](Env& env) { return std::make_shared<Busy>(env, "a"); });
  sim.run_for(10s);
  const double took = seconds_since(start);
  std::printf("three busy nodes, 10 virtual s in %.2f s: %.0f events/s + %.0f handlers/s\n", took,
              static_cast<double>(sim.events()) / took, static_cast<double>(sim.handlers()) / took);
}

void disk() {
  constexpr int kWrites = 200'000;
  const auto start = std::chrono::steady_clock::now();
  SimFs fs(1);
  auto file = std::move(fs.open("/f", OpenMode::create).value());
  const Bytes frame(300, std::byte{'x'});
  for (int i = 0; i < kWrites; ++i) {
    (void)file->pwrite(frame, static_cast<std::uint64_t>(i) * frame.size());
    (void)file->datasync();
  }
  const double took = seconds_since(start);
  std::printf("disk: %.0f appends with datasync/s\n", kWrites / took);
  const auto again = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) (void)fs.clone();
  std::printf("disk: %.2f ms a clone of %llu MB\n", seconds_since(again) * 10,
              static_cast<unsigned long long>(fs.used_bytes() / 1'000'000));
}

}  // namespace
}  // namespace narad::sim

int main() {
  narad::sim::nodes();
  narad::sim::disk();
}

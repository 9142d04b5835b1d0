#pragma once
// For tests of this directory: a world of one loop with virtual time and streams in memory. Nothing
// sleeps; run_for() leaps from timer to timer. Raw peers are driven from outside the loop, byte by
// byte if need be.
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/async/task_group.h"
#include "pkg/env/env.h"
#include "pkg/sim/rng.h"
#include "pkg/sim/sim_fs.h"

namespace narad::http {

// A handler that waits for something, and its cancellation.
template <class H>
class WaitingHandler {
 public:
  // The slot knows this object's state weakly: the handler owns the slot.
  void put(H handler) {
    state_ = std::make_shared<State>();
    auto slot = asio::get_associated_cancellation_slot(handler);
    state_->handler.emplace(std::move(handler));
    if (slot.is_connected()) {
      slot.assign([weak = std::weak_ptr<State>(state_)](asio::cancellation_type) {
        if (auto state = weak.lock(); state && state->handler) state->cancel();
      });
    }
  }
  bool waiting() const { return state_ && state_->handler; }
  template <class... Args>
  void finish(Args... args) {
    H handler(std::move(*state_->handler));
    state_.reset();
    complete(std::move(handler), std::move(args)...);
  }
  void drop() { state_.reset(); }

 private:
  struct State {
    std::optional<H> handler;
    void cancel();
  };
  std::shared_ptr<State> state_;
};
template <>
inline void WaitingHandler<IoHandler>::State::cancel() {
  IoHandler h(std::move(*handler));
  handler.reset();
  complete(std::move(h), error_code(asio::error::operation_aborted), std::size_t{0});
}
template <>
inline void WaitingHandler<StreamHandler>::State::cancel() {
  StreamHandler h(std::move(*handler));
  handler.reset();
  complete(std::move(h), error_code(asio::error::operation_aborted), std::unique_ptr<Stream>());
}

// One direction of a connection.
struct Pipe {
  std::string bytes;             // written and not yet read
  std::size_t window = 1 << 20;  // writers wait beyond it
  std::size_t read_max = ~std::size_t{0};
  bool ended = false;  // no more will be written
  bool reset = false;
  WaitingHandler<IoHandler> reader;
  asio::mutable_buffer reader_buffer;
  WaitingHandler<IoHandler> writer;
  std::string writer_bytes;

  void pump() {
    if (reader.waiting() && !bytes.empty()) {
      const std::size_t n = std::min({bytes.size(), reader_buffer.size(), read_max});
      std::memcpy(reader_buffer.data(), bytes.data(), n);
      bytes.erase(0, n);
      reader.finish(error_code(), n);
    } else if (reader.waiting() && (reset || ended)) {
      error_code ec = asio::error::eof;
      if (reset) ec = asio::error::connection_reset;
      reader.finish(ec, std::size_t{0});
    }
    if (writer.waiting() && (reset || bytes.size() < window)) {
      if (reset) return writer.finish(error_code(asio::error::broken_pipe), std::size_t{0});
      const std::size_t n = std::min(writer_bytes.size(), window - bytes.size());
      bytes.append(writer_bytes, 0, n);
      writer.finish(error_code(), n);
      pump();
    }
  }
};

class MemoryStream final : public Stream {
 public:
  MemoryStream(std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out, Endpoint peer)
      : in_(std::move(in)), out_(std::move(out)), peer_(std::move(peer)) {}
  ~MemoryStream() override { close(); }
  void read_some(asio::mutable_buffer buffer, IoHandler handler) override {
    if (closed_)
      return complete(std::move(handler), error_code(asio::error::bad_descriptor), std::size_t{0});
    in_->reader_buffer = buffer;
    in_->reader.put(std::move(handler));
    in_->pump();
  }
  void write_some(const ConstBuffers& buffers, IoHandler handler) override {
    if (closed_)
      return complete(std::move(handler), error_code(asio::error::bad_descriptor), std::size_t{0});
    out_->writer_bytes.clear();
    for (const auto& b : buffers)
      out_->writer_bytes.append(static_cast<const char*>(b.data()), b.size());
    out_->writer.put(std::move(handler));
    out_->pump();
  }
  void shutdown_write() noexcept override {
    out_->ended = true;
    out_->pump();
  }
  void close() noexcept override {
    if (closed_) return;
    closed_ = true;
    if (in_->reader.waiting())
      in_->reader.finish(error_code(asio::error::operation_aborted), std::size_t{0});
    if (out_->writer.waiting())
      out_->writer.finish(error_code(asio::error::operation_aborted), std::size_t{0});
    // As TCP does it: unread input makes the close a reset.
    if (!in_->bytes.empty()) out_->reset = true;
    in_->reset = true;
    out_->ended = true;
    out_->pump();
    in_->pump();
  }
  Endpoint peer() const override { return peer_; }

 private:
  std::shared_ptr<Pipe> in_, out_;
  Endpoint peer_;
  bool closed_ = false;
};

class TestWorld : public Clock, Timers, Random, Blocking, Net, LogSink, Process, Signals {
 public:
  TestWorld()
      : env{context.get_executor(),
            *this,
            *this,
            *this,
            fs,
            *this,
            *this,
            *this,
            *this,
            *this,
            parking} {}
  ~TestWorld() override { die(); }

  // The node ends between two handlers. What waits goes first, while everything it may touch still
  // stands; pipes keep what was written.
  void die() {
    dead_ = true;
    for (auto& [port, listener] : listeners_) listener->waiting.drop();
    for (auto& weak : pipes_) {
      if (auto pipe = weak.lock()) {
        pipe->reader.drop();
        pipe->writer.drop();
      }
    }
    while (!timers_.empty()) timers_.extract(timers_.begin());
    parking.drop_all();
    context.shutdown();
  }
  bool has_timers() const { return !timers_.empty(); }
  bool listens(std::uint16_t port) const { return listeners_.contains(port); }

  struct Context : asio::io_context {
    using asio::io_context::shutdown;
  };
  Context context;
  sim::SimFs fs;
  Parking parking;
  std::vector<std::string> log;
  std::string exit_reason;
  std::size_t connects = 0;
  error_code next_accept_error;
  Env env;

  // ---- driving -----------------------------------------------------------------------------
  void poll() {
    context.restart();
    context.poll();
  }
  // Runs until nothing is ready and no timer is due within `span`, which then has passed.
  void run_for(Nanos span) {
    const Nanos end = now_ + span;
    for (;;) {
      poll();
      if (timers_.empty() || timers_.begin()->first.first > end) break;
      auto node = timers_.extract(timers_.begin());
      now_ = std::max(now_, node.key().first);
      complete(VoidHandler(std::move(node.mapped())), error_code());
    }
    now_ = end;
  }
  // Runs `task` to its end; nothing if it has not ended after `limit`.
  template <class T>
  std::optional<T> run(Task<T> task, Nanos limit = std::chrono::minutes(10)) {
    auto result = std::make_shared<std::optional<T>>();
    auto failure = std::make_shared<std::exception_ptr>();
    asio::co_spawn(context, std::move(task), [result, failure](std::exception_ptr e, T value) {
      *failure = e;
      if (!e) result->emplace(std::move(value));
    });
    const Nanos end = now_ + limit;
    while (!*result && !*failure && now_ < end) {
      poll();
      if (*result || *failure || timers_.empty()) break;
      run_for(std::max(Nanos(0), timers_.begin()->first.first - now_));
    }
    if (*failure) std::rethrow_exception(*failure);
    return std::move(*result);
  }
  bool run(Task<void> task, Nanos limit = std::chrono::minutes(10)) {
    const auto wrap = [](Task<void> t) -> Task<bool> {
      co_await std::move(t);
      co_return true;
    };
    return run(wrap(std::move(task)), limit).has_value();
  }
  Nanos now() const { return now_; }

  // ---- connections ---------------------------------------------------------------------------
  // The far end of a connection, driven by hand.
  struct Peer {
    std::shared_ptr<Pipe> to, from;
    void send(std::string_view bytes) {
      to->bytes += bytes;
      to->pump();
    }
    void shutdown() {
      to->ended = true;
      to->pump();
    }
    void reset() {
      to->reset = from->reset = true;
      to->pump();
      from->pump();
    }
    // Takes what has arrived.
    std::string take() {
      std::string out = std::exchange(from->bytes, {});
      from->pump();
      return out;
    }
    bool closed() const { return (from->ended || from->reset) && from->bytes.empty(); }
  };
  // The accepting side of the last connect(), to speak in its name.
  std::optional<Peer> last_accepted;
  struct Connection {
    std::unique_ptr<Stream> near;
    Peer far;
  };
  Connection connection() {
    auto a = pipe(), b = pipe();
    Connection c;
    c.far = Peer{a, b};
    c.near = std::make_unique<MemoryStream>(a, b, Endpoint{"10.0.0.1", 5000});
    return c;
  }
  // Connects to what listens on `port`; the listener must be there.
  Peer dial(std::uint16_t port) {
    auto c = connection();
    arrive(port, std::move(c.near));
    return c.far;
  }

  // ---- doors ---------------------------------------------------------------------------------
  Nanos mono() const noexcept override { return now_; }
  Nanos boot() const noexcept override { return now_; }
  Nanos wall() const noexcept override { return now_ + std::chrono::hours(24 * 365 * 50); }
  void wait(Nanos delay, VoidHandler handler) override {
    if (dead_) return;
    const std::pair key(now_ + std::max(delay, Nanos(0)), ++sequence_);
    auto slot = asio::get_associated_cancellation_slot(handler);
    timers_.emplace(key, std::move(handler));
    if (!slot.is_connected()) return;
    slot.assign([this, key](asio::cancellation_type) {
      auto node = timers_.extract(key);
      if (node)
        complete(VoidHandler(std::move(node.mapped())), error_code(asio::error::operation_aborted));
    });
  }
  std::uint64_t next() override { return rng_.next(); }
  void run(const char*, UniqueFunction job, VoidHandler handler) override {
    job();
    complete(std::move(handler), error_code());
  }
  Result<std::unique_ptr<Listener>> listen(const Endpoint& at) override {
    if (listeners_.contains(at.port)) return Error::system(EADDRINUSE, "listen");
    auto queue = std::make_shared<Listening>();
    listeners_[at.port] = queue;
    return std::unique_ptr<Listener>(std::make_unique<TestListener>(*this, at, queue));
  }
  void connect(const Endpoint& to, StreamHandler handler) override {
    ++connects;
    if (!listeners_.contains(to.port))
      return complete(std::move(handler), error_code(asio::error::connection_refused),
                      std::unique_ptr<Stream>());
    auto a = pipe(), b = pipe();
    last_accepted = Peer{b, a};
    arrive(to.port, std::make_unique<MemoryStream>(a, b, Endpoint{"10.0.0.2", 6000}));
    complete(std::move(handler), error_code(),
             std::unique_ptr<Stream>(std::make_unique<MemoryStream>(b, a, to)));
  }
  bool enabled(LogLevel) const noexcept override { return true; }
  void write(const LogRecord& record) override {
    std::string line(record.message);
    for (const auto& f : record.fields) line += " " + f.key + "=" + f.value;
    log.push_back(std::move(line));
  }
  void exit(int, std::string_view why) override { exit_reason = why; }
  void wait(SignalHandler) override {}

 private:
  struct Listening {
    std::deque<std::unique_ptr<Stream>> queue;
    WaitingHandler<StreamHandler> waiting;
  };
  class TestListener final : public Listener {
   public:
    TestListener(TestWorld& world, Endpoint at, std::shared_ptr<Listening> state)
        : world_(world), at_(std::move(at)), state_(std::move(state)) {}
    ~TestListener() override {
      world_.listeners_.erase(at_.port);
      if (state_->waiting.waiting())
        state_->waiting.finish(error_code(asio::error::operation_aborted),
                               std::unique_ptr<Stream>());
    }
    void accept(StreamHandler handler) override {
      if (world_.next_accept_error) {
        return complete(std::move(handler), std::exchange(world_.next_accept_error, {}),
                        std::unique_ptr<Stream>());
      }
      state_->waiting.put(std::move(handler));
      world_.hand_out(*state_);
    }
    Endpoint local() const override { return at_; }

   private:
    TestWorld& world_;
    Endpoint at_;
    std::shared_ptr<Listening> state_;
  };
  std::shared_ptr<Pipe> pipe() {
    std::erase_if(pipes_, [](const auto& weak) { return weak.expired(); });
    auto fresh = std::make_shared<Pipe>();
    pipes_.push_back(fresh);
    return fresh;
  }
  void hand_out(Listening& l) {
    if (!l.waiting.waiting() || l.queue.empty()) return;
    auto stream = std::move(l.queue.front());
    l.queue.pop_front();
    l.waiting.finish(error_code(), std::move(stream));
  }
  void arrive(std::uint16_t port, std::unique_ptr<Stream> stream) {
    auto& l = *listeners_.at(port);
    l.queue.push_back(std::move(stream));
    hand_out(l);
  }

  Nanos now_ = std::chrono::seconds(1000);
  std::uint64_t sequence_ = 0;
  std::map<std::pair<Nanos, std::uint64_t>, VoidHandler> timers_;
  sim::Rng rng_{1};
  std::vector<std::weak_ptr<Pipe>> pipes_;
  bool dead_ = false;
  std::map<std::uint16_t, std::shared_ptr<Listening>> listeners_;
};

}  // namespace narad::http

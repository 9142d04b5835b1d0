#include "pkg/sim/sim_net.h"

#include <algorithm>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstring>

#include "pkg/base/assert.h"
#include "pkg/base/bytes.h"
#include "pkg/base/text.h"

namespace narad::sim {

namespace {
error_code code(asio::error::basic_errors e) { return asio::error::make_error_code(e); }

// Bytes in order, cheap at both ends.
class ByteQueue {
 public:
  std::size_t size() const { return size_; }
  void push(Bytes bytes) {
    if (bytes.empty()) return;
    size_ += bytes.size();
    chunks_.push_back(std::move(bytes));
  }
  // REQUIRES: n <= size().
  void pop(std::byte* to, std::size_t n) {
    size_ -= n;
    while (n > 0) {
      const Bytes& chunk = chunks_.front();
      const std::size_t part = std::min(n, chunk.size() - head_);
      std::memcpy(to, chunk.data() + head_, part);
      to += part;
      n -= part;
      head_ += part;
      if (head_ == chunk.size()) {
        chunks_.pop_front();
        head_ = 0;
      }
    }
  }
  void clear() { *this = ByteQueue(); }

 private:
  std::deque<Bytes> chunks_;
  std::size_t head_ = 0;  // bytes of the first chunk already taken
  std::size_t size_ = 0;
};
}  // namespace

struct SimNet::Segment {
  Bytes bytes;
  bool fin = false;
  bool rst = false;
};

// One side of a connection. `closed`: the program closed it. `gone`: its process is no more.
struct SimNet::End {
  NodeId node = kWorld;
  Endpoint local, remote;
  ByteQueue unread;
  bool eof = false;  // the peer's FIN arrived
  error_code reset;  // set once reset
  bool closed = false, gone = false;
  bool shut = false;      // no more writes
  bool silenced = false;  // nothing sent from here arrives any more
  IoHandler reader, writer;
  asio::mutable_buffer read_into;
  ConstBuffers write_from;
  Nanos last_arrival{0};
  std::size_t in_window = 0;  // written here, not read there
  std::size_t owed = 0;       // read here, not yet told to the writer (blocked)
  bool watched = false;
};

struct SimNet::Connection : std::enable_shared_from_this<Connection> {
  End end[2];
  std::deque<Segment> held[2];  // sent from that end, waiting for a block to be lifted
};

struct SimNet::Acceptor {
  Endpoint at;
  bool loopback_only = false;
  StreamHandler waiting;
  std::uint64_t wait_number = 0;
  std::deque<std::unique_ptr<Stream>> ready;
  bool dead = false;
};

struct SimNet::Connecting {
  NodeId node = kWorld;
  NodeId peer = kWorld;
  Endpoint to;
  StreamHandler handler;
  Nanos give_up_at{0};
  int attempts = 0;
  ConnectionPtr connection;  // once the peer has answered
};

// ---- streams -----------------------------------------------------------------------------------

class SimStream final : public Stream {
 public:
  SimStream(SimNet& net, SimNet::ConnectionPtr c, int side, const Power& power)
      : net_(net), c_(std::move(c)), side_(side), power_(power) {}
  ~SimStream() override { close(); }

  void read_some(asio::mutable_buffer buffer, IoHandler handler) override {
    if (!alive()) return;
    auto& me = c_->end[side_];
    NARAD_ASSERT(!me.reader, "two reads outstanding on one stream");
    if (me.closed) return complete(std::move(handler), code(asio::error::bad_descriptor), zero());
    if (buffer.size() == 0) return complete(std::move(handler), error_code{}, zero());
    watch_cancel(handler, true);
    me.read_into = buffer;
    put_handler(me.reader, std::move(handler));
    net_.pump_read(c_, side_);
  }
  void write_some(const ConstBuffers& buffers, IoHandler handler) override {
    if (!alive()) return;
    auto& me = c_->end[side_];
    NARAD_ASSERT(!me.writer, "two writes outstanding on one stream");
    if (me.closed) return complete(std::move(handler), code(asio::error::bad_descriptor), zero());
    if (me.shut) return complete(std::move(handler), code(asio::error::broken_pipe), zero());
    if (buffers.bytes() == 0) return complete(std::move(handler), error_code{}, zero());
    watch_cancel(handler, false);
    me.write_from = buffers;
    put_handler(me.writer, std::move(handler));
    net_.pump_write(c_, side_);
  }
  void shutdown_write() noexcept override {
    if (!alive()) return;
    auto& me = c_->end[side_];
    if (me.closed || me.shut) return;
    me.shut = true;
    // A write that is still waiting for room ends like one that comes later.
    if (me.writer) {
      complete(std::exchange(me.writer, nullptr), code(asio::error::broken_pipe), zero());
    }
    if (!me.reset) net_.send(c_, side_, {{}, true, false});
  }
  void close() noexcept override {
    if (!alive()) return;
    net_.close_end(c_, side_);
  }
  Endpoint peer() const override { return c_->end[side_].remote; }

 private:
  static std::size_t zero() { return 0; }
  bool alive() const { return power_.on && !c_->end[side_].gone; }
  // The slot must not own the handler, nor keep the connection.
  void watch_cancel(IoHandler& handler, bool reader) {
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (!slot.is_connected()) return;
    slot.assign([weak = std::weak_ptr(c_), side = side_, reader](asio::cancellation_type) {
      auto c = weak.lock();
      if (!c) return;
      auto& pending = reader ? c->end[side].reader : c->end[side].writer;
      if (pending) {
        complete(std::exchange(pending, nullptr), code(asio::error::operation_aborted), zero());
      }
    });
  }

  SimNet& net_;
  const SimNet::ConnectionPtr c_;
  const int side_;
  const Power& power_;
};

class SimListener final : public Listener {
 public:
  SimListener(SimNet& net, NodeId node, std::shared_ptr<SimNet::Acceptor> acceptor,
              const Power& power)
      : net_(net), node_(node), acceptor_(std::move(acceptor)), power_(power) {}
  ~SimListener() override {
    if (acceptor_->dead || !power_.on) return;
    acceptor_->dead = true;
    net_.listeners_.erase({node_, acceptor_->at.port});
    if (acceptor_->waiting) {
      complete(std::exchange(acceptor_->waiting, nullptr), code(asio::error::operation_aborted),
               std::unique_ptr<Stream>());
    }
    auto unaccepted = std::move(acceptor_->ready);  // closed as they go
  }
  void accept(StreamHandler handler) override {
    if (!power_.on || acceptor_->dead) return;
    NARAD_ASSERT(!acceptor_->waiting, "two accepts outstanding on one listener");
    if (!acceptor_->ready.empty()) {
      auto stream = std::move(acceptor_->ready.front());
      acceptor_->ready.pop_front();
      complete(std::move(handler), error_code{}, std::move(stream));
      return;
    }
    auto slot = asio::get_associated_cancellation_slot(handler);
    put_handler(acceptor_->waiting, std::move(handler));
    const std::uint64_t number = ++acceptor_->wait_number;
    if (slot.is_connected()) {
      slot.assign([weak = std::weak_ptr(acceptor_), number](asio::cancellation_type) {
        auto acceptor = weak.lock();
        if (!acceptor || acceptor->wait_number != number || !acceptor->waiting) return;
        complete(std::exchange(acceptor->waiting, nullptr), code(asio::error::operation_aborted),
                 std::unique_ptr<Stream>());
      });
    }
  }
  Endpoint local() const override { return acceptor_->at; }

 private:
  SimNet& net_;
  const NodeId node_;
  const std::shared_ptr<SimNet::Acceptor> acceptor_;
  const Power& power_;
};

// One node's network door.
class SimStack final : public Net {
 public:
  SimStack(SimNet& net, NodeId node, const Power& power) : net_(net), node_(node), power_(power) {}

  Result<std::unique_ptr<Listener>> listen(const Endpoint& at) override {
    const auto fail = [&](int e) { return Error::system(e, cat("listen ", to_string(at))); };
    if (!power_.on) return fail(ENETDOWN);
    const bool any = at.host.empty() || at.host == "0.0.0.0" || at.host == "::";
    if (!any && net_.find_host(node_, at.host) != node_) return fail(EADDRNOTAVAIL);
    auto acceptor = std::make_shared<SimNet::Acceptor>();
    acceptor->at = at;
    acceptor->loopback_only = is_loopback(at);
    if (any) acceptor->at.host = "0.0.0.0";
    auto& host = net_.hosts_.at(node_);
    while (at.port == 0) {
      acceptor->at.port = host.next_port++;
      if (!net_.listeners_.contains({node_, acceptor->at.port})) break;
    }
    if (!net_.listeners_.emplace(std::pair{node_, acceptor->at.port}, acceptor).second) {
      return fail(EADDRINUSE);
    }
    return std::unique_ptr<Listener>(
        std::make_unique<SimListener>(net_, node_, std::move(acceptor), power_));
  }
  void connect(const Endpoint& to, StreamHandler handler) override {
    if (!power_.on) return;
    net_.start_connect(node_, to, std::move(handler));
  }

 private:
  SimNet& net_;
  const NodeId node_;
  const Power& power_;
};

// ---- nodes and links ---------------------------------------------------------------------------

SimNet::SimNet(Sim& sim) : sim_(sim), rng_(sim.stream("net")) {}
SimNet::~SimNet() = default;

std::unique_ptr<Net> SimNet::add_node(NodeId node, const std::string& host, const Power& power) {
  for (const auto& [id, other] : hosts_) NARAD_ASSERT(other.name != host, host);
  Host entry;
  entry.name = host;
  entry.power = &power;
  NARAD_ASSERT(hosts_.emplace(node, std::move(entry)).second);
  return std::make_unique<SimStack>(*this, node, power);
}

void SimNet::remove_node(NodeId node) { hosts_.erase(node); }

void SimNet::machine_up(NodeId node) { hosts_.at(node).machine_up = true; }

std::vector<NodeId> SimNet::nodes() const {
  std::vector<NodeId> out;
  for (const auto& [id, host] : hosts_) out.push_back(id);
  return out;
}

const Link& SimNet::link_of(NodeId from, NodeId to) const {
  auto it = links_.find({from, to});
  return it == links_.end() ? link : it->second;
}

Nanos SimNet::latency(NodeId from, NodeId to) {
  const Link& l = link_of(from, to);
  Nanos out = l.latency_min + Nanos(static_cast<std::int64_t>(rng_.below(
                                  static_cast<std::uint64_t>(l.latency_spread.count()) + 1)));
  if (rng_.chance(l.slow)) {
    out += Nanos(
        static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(l.slow_max.count()) + 1)));
  }
  return out;
}

NodeId SimNet::find_host(NodeId asker, const std::string& name) const {
  if (name == "localhost" || name == "::1" || name.starts_with("127.")) return asker;
  for (const auto& [id, host] : hosts_) {
    if (host.name == name) return id;
  }
  return kWorld;
}

bool SimNet::process_up(NodeId node) const {
  auto it = hosts_.find(node);
  return it != hosts_.end() && it->second.power->on;
}

void SimNet::block(NodeId from, NodeId to) {
  if (from != to) blocked_.emplace(std::pair{from, to}, sim_.now());
}

void SimNet::unblock(NodeId from, NodeId to) {
  if (blocked_.erase({from, to}) != 0) release_held(from, to);
}

void SimNet::partition(const std::set<NodeId>& side) {
  for (const auto& [a, host_a] : hosts_) {
    for (const auto& [b, host_b] : hosts_) {
      if (side.contains(a) != side.contains(b)) block(a, b);
    }
  }
}

void SimNet::heal() {
  auto lifted = std::exchange(blocked_, {});
  for (const auto& [pair, since] : lifted) release_held(pair.first, pair.second);
}

void SimNet::reset_connections(NodeId a, NodeId b) {
  const auto all = connections_;
  for (const auto& weak : all) {
    auto c = weak.lock();
    if (!c) continue;
    const NodeId x = c->end[0].node, y = c->end[1].node;
    if (!((x == a && y == b) || (x == b && y == a))) continue;
    for (int side : {0, 1}) {
      c->end[side].silenced = true;
      reset(c, side, code(asio::error::connection_reset));
    }
  }
}

std::size_t SimNet::open_connections() const {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(), [](const auto& weak) {
        auto c = weak.lock();
        return c && !(c->end[0].closed || c->end[0].gone) && !(c->end[1].closed || c->end[1].gone);
      }));
}

void SimNet::drop_node(NodeId node, bool power_cut) {
  if (power_cut) hosts_.at(node).machine_up = false;
  for (auto it = connecting_.begin(); it != connecting_.end();) {
    if (it->second.node != node) {
      ++it;
      continue;
    }
    auto entry = connecting_.extract(it++);  // the handler goes at the end of this scope
  }
  const auto all = connections_;
  for (const auto& weak : all) {
    auto c = weak.lock();
    if (!c) continue;
    for (int side : {0, 1}) {
      End& end = c->end[side];
      if (end.node != node || end.gone) continue;
      const bool was_closed = end.closed;
      end.gone = true;
      {
        IoHandler reader(std::move(end.reader)), writer(std::move(end.writer));
      }
      if (!power_cut) {
        // The kernel closes what the process had open.
        if (!was_closed && !end.reset) {
          send(c, side, {{}, end.unread.size() == 0, end.unread.size() != 0});
        }
        continue;
      }
      c->held[side].clear();
      if (rng_.chance(faults.crash_loses_tail)) {
        end.silenced = true;
        ++stats.lost_tails;
      }
      if (rng_.chance(faults.rst_on_crash)) {
        const Nanos delay = latency(node, c->end[1 - side].node);
        sim_.after(delay, kWorld, "rst", [this, c, other = 1 - side](bool) {
          c->end[1 - other].silenced = true;
          reset(c, other, code(asio::error::connection_reset));
        });
      }
    }
  }
  for (auto it = listeners_.begin(); it != listeners_.end();) {
    if (it->first.first != node) {
      ++it;
      continue;
    }
    auto acceptor = std::move(it->second);
    it = listeners_.erase(it);
    acceptor->dead = true;
    StreamHandler dead(std::move(acceptor->waiting));
    acceptor->ready.clear();
  }
}

// ---- segments ----------------------------------------------------------------------------------

void SimNet::send(const ConnectionPtr& c, int from, Segment segment) {
  End& source = c->end[from];
  const NodeId to = c->end[1 - from].node;
  if (source.silenced) return;  // nothing may arrive past a lost chunk: streams have no holes
  ++stats.chunks;
  stats.bytes += segment.bytes.size();
  if (!segment.bytes.empty() && rng_.chance(link_of(source.node, to).reset)) {
    source.silenced = true;
    const Nanos delay = latency(source.node, to);
    sim_.after(delay, kWorld, "rst", [this, c](bool) {
      for (int side : {0, 1}) reset(c, side, code(asio::error::connection_reset));
    });
    return;
  }
  if (blocked(source.node, to) || !c->held[from].empty()) {
    ++stats.held;
    c->held[from].push_back(std::move(segment));
    watch_unacknowledged(c, from);
    return;
  }
  fly(c, from, std::move(segment));
}

void SimNet::fly(const ConnectionPtr& c, int from, Segment segment) {
  End& source = c->end[from];
  const NodeId to = c->end[1 - from].node;
  const Nanos delay = latency(source.node, to);
  // One direction never overtakes itself; a slow link is a queue.
  Nanos arrival = std::max(source.last_arrival, sim_.now() + delay);
  if (const std::uint64_t rate = link_of(source.node, to).bytes_per_second; rate != 0) {
    arrival += Nanos(static_cast<std::int64_t>(segment.bytes.size() * 1'000'000'000 / rate));
  }
  source.last_arrival = arrival;
  sim_.at(arrival, kWorld, "arrive", [this, c, from, segment = std::move(segment)](bool) mutable {
    arrive(c, from, std::move(segment));
  });
}

void SimNet::arrive(const ConnectionPtr& c, int from, Segment segment) {
  End& source = c->end[from];
  End& target = c->end[1 - from];
  if (source.silenced) return;
  sim_.mix(segment.bytes.size());
  if (target.gone || target.closed) {
    if (segment.rst) return;
    auto host = hosts_.find(target.node);
    const bool machine_up = host != hosts_.end() && host->second.machine_up;
    if (!machine_up) {  // silence: the sender goes on until it gives up
      watch_unacknowledged(c, from);
    } else if (!segment.bytes.empty() || target.gone) {
      const Nanos delay = latency(target.node, source.node);
      sim_.after(delay, kWorld, "rst", [this, c, from](bool) {
        if (!blocked(c->end[1 - from].node, c->end[from].node)) {
          reset(c, from, code(asio::error::connection_reset));
        }
      });
    }
    return;
  }
  if (segment.rst) {
    reset(c, 1 - from, code(asio::error::connection_reset));
    return;
  }
  // The kernel's acknowledgement does not come back.
  if (blocked(target.node, source.node)) watch_unacknowledged(c, from);
  target.unread.push(std::move(segment.bytes));
  if (segment.fin) target.eof = true;
  pump_read(c, 1 - from);
}

// After give_up the sender is told, unless what was in the way has been away in between.
void SimNet::watch_unacknowledged(const ConnectionPtr& c, int from) {
  End& source = c->end[from];
  if (source.watched) return;
  source.watched = true;
  sim_.after(faults.give_up, kWorld, "give up", [this, c, from, since = sim_.now()](bool) {
    End& source = c->end[from];
    const End& target = c->end[1 - from];
    source.watched = false;
    if (source.gone || source.reset) return;
    bool stuck = target.gone || target.closed;
    for (auto pair : {std::pair(source.node, target.node), std::pair(target.node, source.node)}) {
      auto it = blocked_.find(pair);
      if (it == blocked_.end()) continue;
      stuck |= it->second <= since;
      if (!stuck) watch_unacknowledged(c, from);  // a later block: its own time
    }
    if (!stuck) return;
    c->held[from].clear();
    source.silenced = true;
    ++stats.timed_out;
    reset(c, from, code(asio::error::timed_out));
  });
}

void SimNet::release_held(NodeId from, NodeId to) {
  const auto all = connections_;
  for (const auto& weak : all) {
    auto c = weak.lock();
    if (!c) continue;
    for (int side : {0, 1}) {
      if (c->end[side].node != from || c->end[1 - side].node != to) continue;
      auto held = std::move(c->held[side]);
      c->held[side].clear();
      for (Segment& segment : held) fly(c, side, std::move(segment));
      if (const std::size_t owed = std::exchange(c->end[side].owed, 0); owed != 0) {
        credit(c, side, owed);
      }
    }
  }
}

void SimNet::reset(const ConnectionPtr& c, int side, error_code why) {
  End& end = c->end[side];
  if (end.gone || end.closed || end.reset) return;
  end.reset = why;
  ++stats.resets;
  if (rng_.chance(faults.reset_drops_unread)) end.unread.clear();
  pump_read(c, side);
  if (end.writer) {
    complete(std::exchange(end.writer, nullptr), why, std::size_t{0});
  }
}

void SimNet::close_end(const ConnectionPtr& c, int side) {
  End& end = c->end[side];
  if (end.closed) return;
  end.closed = true;
  if (end.reader) {
    complete(std::exchange(end.reader, nullptr), code(asio::error::operation_aborted),
             std::size_t{0});
  }
  if (end.writer) {
    complete(std::exchange(end.writer, nullptr), code(asio::error::operation_aborted),
             std::size_t{0});
  }
  if (end.reset) return;
  // Closing with unread bytes tells the peer by a reset, as kernels do.
  if (end.unread.size() != 0) {
    send(c, side, {{}, false, true});
  } else if (!end.shut) {
    send(c, side, {{}, true, false});
  }
}

// ---- reading and writing -----------------------------------------------------------------------

void SimNet::pump_read(const ConnectionPtr& c, int side) {
  End& end = c->end[side];
  if (!end.reader) return;
  if (end.unread.size() != 0) {
    std::size_t n = std::min(end.read_into.size(), end.unread.size());
    if (n > 1 && rng_.chance(faults.split_read)) {
      n = static_cast<std::size_t>(rng_.range(1, n));
    }
    end.unread.pop(static_cast<std::byte*>(end.read_into.data()), n);
    complete(std::exchange(end.reader, nullptr), error_code{}, n);
    credit(c, side, n);
    return;
  }
  if (end.reset) {
    complete(std::exchange(end.reader, nullptr), end.reset, std::size_t{0});
  } else if (end.eof) {
    complete(std::exchange(end.reader, nullptr), error_code(asio::error::eof), std::size_t{0});
  }
}

// `reader` has taken `bytes`: the writer may send as many more.
void SimNet::credit(const ConnectionPtr& c, int reader, std::size_t bytes) {
  if (blocked(c->end[reader].node, c->end[1 - reader].node)) {
    c->end[reader].owed += bytes;
    watch_unacknowledged(c, 1 - reader);
    return;
  }
  End& writer = c->end[1 - reader];
  NARAD_ASSERT(writer.in_window >= bytes);
  writer.in_window -= bytes;
  pump_write(c, 1 - reader);
}

void SimNet::pump_write(const ConnectionPtr& c, int side) {
  End& end = c->end[side];
  if (!end.writer) return;
  if (end.reset) {
    complete(std::exchange(end.writer, nullptr), end.reset, std::size_t{0});
    return;
  }
  if (end.in_window >= faults.window_bytes) {
    ++stats.full_windows;
    return;
  }
  std::size_t n = std::min(end.write_from.bytes(), faults.window_bytes - end.in_window);
  if (n > 1 && rng_.chance(faults.partial_write)) {
    n = static_cast<std::size_t>(rng_.range(1, n));
  }
  Segment segment;
  segment.bytes.resize(n);
  asio::buffer_copy(asio::buffer(segment.bytes.data(), n), end.write_from);
  end.in_window += n;
  complete(std::exchange(end.writer, nullptr), error_code{}, n);
  send(c, side, std::move(segment));
}

// ---- connecting --------------------------------------------------------------------------------

void SimNet::start_connect(NodeId node, const Endpoint& to, StreamHandler handler) {
  const std::uint64_t id = ++last_connecting_;
  auto slot = asio::get_associated_cancellation_slot(handler);
  Connecting& entry = connecting_[id];
  entry.node = node;
  entry.to = to;
  entry.peer = find_host(node, to.host);
  put_handler(entry.handler, std::move(handler));
  entry.give_up_at = sim_.now() + faults.give_up;
  if (slot.is_connected()) {
    slot.assign([this, id](asio::cancellation_type) {
      end_connect(id, code(asio::error::operation_aborted));
    });
  }
  if (entry.peer == kWorld) {
    const Nanos delay = latency(node, node);
    sim_.after(delay, kWorld, "no such host", [this, id](bool) {
      end_connect(id, asio::error::make_error_code(asio::error::host_not_found));
    });
    return;
  }
  try_connect(id);
}

void SimNet::try_connect(std::uint64_t id) {
  auto it = connecting_.find(id);
  if (it == connecting_.end()) return;
  Connecting& entry = it->second;
  const bool lost = blocked(entry.node, entry.peer) || rng_.chance(faults.connect_hang);
  if (lost) return retry_connect(id);
  const Nanos delay = latency(entry.node, entry.peer);
  sim_.after(delay, kWorld, "syn", [this, id](bool) { syn(id); });
}

// No answer: once more after one, two, four... seconds.
void SimNet::retry_connect(std::uint64_t id) {
  Connecting& entry = connecting_.at(id);
  const Nanos wait = std::chrono::seconds(1) * (1 << std::min(entry.attempts++, 6));
  const Nanos next = std::min(sim_.now() + wait, entry.give_up_at);
  sim_.at(next, kWorld, "syn again", [this, id](bool) {
    auto it = connecting_.find(id);
    if (it == connecting_.end()) return;
    if (sim_.now() >= it->second.give_up_at) {
      ++stats.timed_out;
      end_connect(id, code(asio::error::timed_out));
    } else if (it->second.connection) {
      syn_ack(id);
    } else {
      try_connect(id);
    }
  });
}

void SimNet::syn(std::uint64_t id) {
  auto it = connecting_.find(id);
  if (it == connecting_.end()) return;  // given up meanwhile
  Connecting& entry = it->second;
  auto host = hosts_.find(entry.peer);
  if (host == hosts_.end() || !host->second.machine_up) return retry_connect(id);
  auto listener = listeners_.find({entry.peer, entry.to.port});
  const bool open = listener != listeners_.end() && process_up(entry.peer) &&
                    (!listener->second->loopback_only || entry.peer == entry.node);
  if (!open || rng_.chance(faults.connect_refused)) {
    const Nanos delay = latency(entry.peer, entry.node);
    sim_.after(delay, kWorld, "refused", [this, id](bool) {
      auto it = connecting_.find(id);
      if (it == connecting_.end()) return;
      if (blocked(it->second.peer, it->second.node)) return retry_connect(id);
      ++stats.refused;
      end_connect(id, code(asio::error::connection_refused));
    });
    return;
  }
  Acceptor& acceptor = *listener->second;
  if (acceptor.ready.size() >= faults.backlog) return retry_connect(id);

  if (connections_.size() >= prune_at_) {
    std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
    prune_at_ = std::max<std::size_t>(64, 2 * connections_.size());
  }
  auto c = std::make_shared<Connection>();
  connections_.push_back(c);
  ++stats.connections;
  Host& client = hosts_.at(entry.node);
  c->end[0].node = entry.node;
  c->end[0].local = Endpoint{client.name, client.next_port++};
  c->end[0].remote = entry.to;
  c->end[1].node = entry.peer;
  c->end[1].local = acceptor.at;
  c->end[1].remote = c->end[0].local;
  if (client.next_port == 0) client.next_port = 32'768;
  entry.connection = c;
  std::unique_ptr<Stream> theirs = std::make_unique<SimStream>(*this, c, 1, *host->second.power);
  if (acceptor.waiting) {
    complete(std::exchange(acceptor.waiting, nullptr), error_code{}, std::move(theirs));
  } else {
    acceptor.ready.push_back(std::move(theirs));
  }
  const Nanos delay = latency(entry.peer, entry.node);
  sim_.after(delay, kWorld, "syn-ack", [this, id](bool) { syn_ack(id); });
}

void SimNet::syn_ack(std::uint64_t id) {
  auto it = connecting_.find(id);
  if (it == connecting_.end()) return;
  Connecting& entry = it->second;
  if (blocked(entry.peer, entry.node)) return retry_connect(id);
  auto c = entry.connection;
  StreamHandler handler(std::move(entry.handler));
  auto stream = std::make_unique<SimStream>(*this, c, 0, *hosts_.at(entry.node).power);
  connecting_.erase(it);
  complete(std::move(handler), error_code{}, std::unique_ptr<Stream>(std::move(stream)));
}

void SimNet::end_connect(std::uint64_t id, error_code why) {
  auto it = connecting_.find(id);
  if (it == connecting_.end()) return;
  StreamHandler handler(std::move(it->second.handler));
  auto c = it->second.connection;
  connecting_.erase(it);
  if (c) {  // the peer believes in it already
    c->end[0].closed = true;
    send(c, 0, {{}, false, true});
  }
  complete(std::move(handler), why, std::unique_ptr<Stream>());
}

}  // namespace narad::sim

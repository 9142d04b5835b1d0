#pragma once
// SimNet: the simulated network. Ordered byte streams with latency, arbitrary chunks,
// back-pressure, blocks, resets and silent deaths. Lives in the Sim's thread; outlives the Machines
// on it, and the Sim outlives it.
//
// Promises of a stream, as of TCP: bytes arrive in order, without holes, at most up to the first
// reset; what was written before close() arrives (then end of file), unless a reset came first.
// Two streams are not ordered with each other.
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pkg/env/net.h"
#include "pkg/sim/doors.h"
#include "pkg/sim/sim.h"

namespace narad::sim {

// One direction between two nodes.
struct Link {
  Nanos latency_min = std::chrono::microseconds(100);
  Nanos latency_spread = std::chrono::milliseconds(2);
  Ppm slow = 0;  // such a chunk takes up to slow_max longer (and so does what follows it)
  Nanos slow_max = std::chrono::milliseconds(300);
  Ppm reset = 0;                       // per chunk: both ends are reset instead
  std::uint64_t bytes_per_second = 0;  // 0: no limit
};

struct NetFaults {
  Ppm connect_refused = 0;
  Ppm connect_hang = 0;              // the first packet is lost: tried again, or given up
  Ppm split_read = 250'000;          // a read returns less than there is
  Ppm partial_write = 100'000;       // a write takes less than fits
  Ppm reset_drops_unread = 500'000;  // a reset throws away what the receiver has not read yet
  Ppm rst_on_crash = 500'000;        // after a power cut the peer hears a reset, else silence
  Ppm crash_loses_tail = 500'000;    // what a crashed machine wrote last never arrives
  Nanos give_up = std::chrono::seconds(15);  // unacknowledged bytes, unanswered connects
  std::size_t window_bytes = 64 * 1024;      // written but not yet read by the peer
  std::size_t backlog = 128;                 // connections not yet accepted
};

class SimNet {
 public:
  explicit SimNet(Sim& sim);
  SimNet(const SimNet&) = delete;
  ~SimNet();

  NetFaults faults;
  Link link;  // where no other is set
  void set_link(NodeId from, NodeId to, const Link& link) { links_[{from, to}] = link; }
  void clear_links() { links_.clear(); }

  // One-way block: bytes from `from` to `to` wait until it is lifted or the sender gives up.
  void block(NodeId from, NodeId to);
  void unblock(NodeId from, NodeId to);
  bool blocked(NodeId from, NodeId to) const { return blocked_.contains({from, to}); }
  // Blocks both ways between `side` and every other node.
  void partition(const std::set<NodeId>& side);
  // Lifts all blocks. Links stay.
  void heal();
  // Resets every connection between the two, now.
  void reset_connections(NodeId a, NodeId b);

  struct Stats {
    std::uint64_t connections = 0, refused = 0, timed_out = 0, resets = 0;
    std::uint64_t chunks = 0, bytes = 0, held = 0, lost_tails = 0, full_windows = 0;
  };
  Stats stats;
  std::size_t open_connections() const;
  std::vector<NodeId> nodes() const;

  // ---- for Machine ----------------------------------------------------------------------------
  // The network door of one node, under that host name (a name or an IP literal).
  std::unique_ptr<Net> add_node(NodeId node, const std::string& host, const Power& power);
  void remove_node(NodeId node);
  // The machine has a running kernel: connects are refused rather than lost.
  void machine_up(NodeId node);
  // The process is gone: destroys every handler the node left here, while its io_context lives.
  // `power_cut`: nothing more leaves the machine; else its kernel closes all connections.
  void drop_node(NodeId node, bool power_cut);

 private:
  friend class SimStream;
  friend class SimListener;
  friend class SimStack;
  struct End;
  struct Connection;
  struct Acceptor;
  struct Connecting;
  struct Segment;
  using ConnectionPtr = std::shared_ptr<Connection>;
  struct Host {
    std::string name;
    const Power* power = nullptr;
    bool machine_up = false;
    std::uint16_t next_port = 32'768;
  };

  const Link& link_of(NodeId from, NodeId to) const;
  Nanos latency(NodeId from, NodeId to);
  NodeId find_host(NodeId asker, const std::string& name) const;
  bool process_up(NodeId node) const;

  void send(const ConnectionPtr& c, int from, Segment segment);
  void fly(const ConnectionPtr& c, int from, Segment segment);
  void arrive(const ConnectionPtr& c, int from, Segment segment);
  void release_held(NodeId from, NodeId to);
  void pump_read(const ConnectionPtr& c, int side);
  void pump_write(const ConnectionPtr& c, int side);
  void credit(const ConnectionPtr& c, int reader, std::size_t bytes);
  void reset(const ConnectionPtr& c, int side, boost::system::error_code why);
  void close_end(const ConnectionPtr& c, int side);
  void watch_unacknowledged(const ConnectionPtr& c, int from);

  void start_connect(NodeId node, const Endpoint& to, StreamHandler handler);
  void try_connect(std::uint64_t id);
  void syn(std::uint64_t id);
  void retry_connect(std::uint64_t id);
  void syn_ack(std::uint64_t id);
  void end_connect(std::uint64_t id, boost::system::error_code why);

  Sim& sim_;
  Rng rng_;
  std::map<NodeId, Host> hosts_;
  std::map<std::pair<NodeId, NodeId>, Link> links_;
  std::map<std::pair<NodeId, NodeId>, Nanos> blocked_;  // since when
  std::map<std::pair<NodeId, std::uint16_t>, std::shared_ptr<Acceptor>> listeners_;
  std::map<std::uint64_t, Connecting> connecting_;
  std::uint64_t last_connecting_ = 0;
  std::vector<std::weak_ptr<Connection>> connections_;
  std::size_t prune_at_ = 64;
};

}  // namespace narad::sim

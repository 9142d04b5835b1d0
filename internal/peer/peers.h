#pragma once
// Calls from this node to others: authenticated connections, one pool per (node, lane), and the
// rule that tells "certainly not executed" from "perhaps". The protocol: docs/internals/
// peer-protocol.md. Lives on one loop.
//
// A connection carries one call at a time; a lane has as many connections as it has calls in
// flight, up to LaneOptions::connections_max, beyond which calls wait in order of arrival until
// their deadline. So within a lane a slow call holds up nobody until the lane is full, and lanes
// never share a connection.
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "internal/peer/party.h"
#include "pkg/async/task.h"
#include "pkg/http/message.h"

namespace narad::peer {

struct Call {
  Call() = default;
  Call(http::Method m, std::string t, std::string b = {})
      : method(m), target(std::move(t)), body(std::move(b)) {}
  http::Method method = http::Method::post;
  std::string target;  // "/peer/v1/…", encoded
  std::string body;
};

struct Answer {
  http::Response response;
  Sender who;  // who gave it, proven
};

// The client side as others see it.
//
// Any status is a success here. Errors: unavailable, certainly not executed (no address, no
// connection, no secret, a refused proof, the deadline passed in the queue; the text says which);
// unknown_outcome, sent but not answered whole, within the limit and well formed before the
// deadline; invalid_argument for a bad target. Cancellation is passed on and ends the connection of
// a call that was sent.
class Caller {
 public:
  virtual ~Caller() = default;
  // One request to another node, answered within `deadline` from now, which is also sent along. The
  // address is looked up anew per call.
  virtual Task<Result<http::Response>> call(std::string node, Lane lane, Call call,
                                            Nanos deadline) = 0;
  // The same to an address whose node is not known yet (joining, bootstrap), over a connection of
  // its own.
  virtual Task<Result<Answer>> call_address(Endpoint at, Lane lane, Call call, Nanos deadline) = 0;
};

// Where members listen for each other (cluster_addr).
class AddressBook {
 public:
  virtual ~AddressBook() = default;
  virtual std::optional<Endpoint> address_of(const std::string& node) const = 0;
};

struct LaneOptions {
  std::size_t connections_max = 8;  // per node
  std::uint64_t answer_bytes_max = 16u << 20;
};

struct PeersOptions {
  std::string secret;
  bool insecure = false;  // security.enabled = false: an empty secret is accepted
  // raft, control, data, bulk.
  std::array<LaneOptions, kLanes> lanes{
      {{2, 1u << 20}, {32, 16u << 20}, {64, 32u << 20}, {4, 16u << 20}}};
  Nanos connect_timeout = std::chrono::seconds(3);
  Nanos handshake_timeout = std::chrono::seconds(5);
  Nanos idle_timeout = std::chrono::seconds(30);  // shorter than the server's
  // After a failed attempt to connect, the next calls fail at once for that long (doubling, and
  // between a half and the whole of it, at random).
  Nanos backoff_min = std::chrono::milliseconds(50);
  Nanos backoff_max = std::chrono::milliseconds(500);
};

// What is known of one lane to one node.
struct LaneStatus {
  std::string node;
  Lane lane = Lane::control;
  std::size_t connections = 0;  // open
  std::size_t calls = 0;        // in flight
  std::size_t waiting = 0;      // for a connection to be free
  std::string last_error;       // why the last attempt to connect failed; empty: it did not
};

struct PeersStats {
  std::uint64_t calls = 0;
  std::uint64_t answered = 0;
  std::uint64_t unavailable = 0;
  std::uint64_t unknown = 0;   // answered unknown_outcome
  std::uint64_t connects = 0;  // connections made and proven
  std::uint64_t connect_failures = 0;
  std::uint64_t refused = 0;  // of those: refused by either side in the preamble
};

class Peers final : public Caller {
 public:
  // `self` and `book` outlive this and every call.
  Peers(Env& env, PeersOptions options, const Self& self, const AddressBook& book);
  Peers(const Peers&) = delete;
  ~Peers() override;  // REQUIRES: stop() has ended, or the node was killed

  Task<Result<http::Response>> call(std::string node, Lane lane, Call call,
                                    Nanos deadline) override;
  Task<Result<Answer>> call_address(Endpoint at, Lane lane, Call call, Nanos deadline) override;

  // Cuts calls in flight off and closes all connections; later calls are unavailable. Idempotent.
  Task<void> stop();

  PeersStats stats(Lane lane) const;
  // By node, then lane; nodes that were called since the start.
  std::vector<LaneStatus> status() const;
  // Why `node` cannot be reached on the control lane, in words; empty if the last attempt succeeded
  // or there was none.
  std::string trouble_with(const std::string& node) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace narad::peer

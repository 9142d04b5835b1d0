#include "internal/peer/raft_lane.h"

#include <deque>
#include <map>

#include "internal/peer/server.h"
#include "internal/wire/raft_message.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"

namespace narad::peer {
namespace {

constexpr std::string_view kTarget = "/peer/v1/raft";
constexpr std::size_t kBytesPerSecond = 512 * 1024;

struct Queued {
  raft::Message message;
  std::size_t bytes;
};

struct Queue {
  std::deque<Queued> messages;
  std::size_t bytes = 0;
  bool running = false;  // a task sends from it

  void push(Queued queued) {
    bytes += queued.bytes;
    messages.push_back(std::move(queued));
  }
  Queued pop() {
    Queued first = std::move(messages.front());
    messages.pop_front();
    bytes -= first.bytes;
    return first;
  }
};

}  // namespace

struct RaftLane::State {
  State(Env& e, Caller& c, RaftLaneOptions o) : env(e), caller(c), options(o), tasks(e) {}

  Env& env;
  Caller& caller;
  const RaftLaneOptions options;
  std::map<std::pair<std::string, bool>, Queue> queues;  // by node and whether it is for chunks
  RaftLaneStats stats;
  TaskGroup tasks;

  std::vector<raft::Message> take_batch(Queue& queue);
  static Task<void> drain(std::shared_ptr<State> s, std::pair<std::string, bool> key);
};

std::vector<raft::Message> RaftLane::State::take_batch(Queue& queue) {
  std::vector<raft::Message> batch;
  std::size_t bytes = 0;
  while (!queue.messages.empty() && batch.size() < wire::kRaftBatchMessagesMax) {
    bytes += queue.messages.front().bytes;
    if (!batch.empty() && bytes > wire::kRaftBatchBytes) break;
    batch.push_back(queue.pop().message);
  }
  return batch;
}

// Sends until the queue is empty.
Task<void> RaftLane::State::drain(std::shared_ptr<State> s, std::pair<std::string, bool> key) {
  Queue& queue = s->queues.at(key);  // never removed
  struct Running {
    explicit Running(std::shared_ptr<State> st, Queue& q) : state(std::move(st)), queue(q) {
      queue.running = true;
    }
    ~Running() { queue.running = false; }
    Running(const Running&) = delete;
    std::shared_ptr<State> state;
    Queue& queue;
  } running(s, queue);

  while (!queue.messages.empty()) {
    const auto batch = s->take_batch(queue);
    auto bodies = wire::encode_raft_bodies(batch);  // one, or two at the limit of a batch
    bool taken = true;
    for (std::string& body : bodies) {
      const auto extra = std::chrono::milliseconds(1'000 * body.size() / kBytesPerSecond);
      Call call(http::Method::post, std::string(kTarget), std::move(body));
      auto answer = co_await s->caller.call(key.first, Lane::raft, std::move(call),
                                            s->options.deadline + extra);
      taken = taken && answer && answer.value().status / 100 == 2;
    }
    (taken ? s->stats.sent : s->stats.lost) += batch.size();
    s->stats.batches += taken;
  }
}

RaftLane::RaftLane(Env& env, Caller& caller, RaftLaneOptions options)
    : state_(std::make_shared<State>(env, caller, options)) {}

RaftLane::~RaftLane() = default;

void RaftLane::send(const std::string& node, raft::Message message) {
  State& s = *state_;
  if (s.tasks.stopping()) return;
  const std::pair key(node, message.kind == raft::MessageKind::snapshot_chunk);
  Queue& queue = s.queues[key];
  const std::size_t bytes = wire::encoded_size(message);
  queue.push(Queued{std::move(message), bytes});
  while (queue.messages.size() > 1 && (queue.messages.size() > s.options.queue_messages_max ||
                                       queue.bytes > s.options.queue_bytes_max)) {
    queue.pop();
    ++s.stats.dropped;
  }
  if (queue.running) return;
  queue.running = true;
  s.tasks.spawn("raft sender", State::drain(state_, key));
}

Task<void> RaftLane::stop() {
  auto state = state_;
  co_await state->tasks.stop();
  for (auto& [key, queue] : state->queues) {
    while (!queue.messages.empty()) queue.pop();
  }
}

RaftLaneStats RaftLane::stats() const {
  RaftLaneStats stats = state_->stats;
  for (const auto& [key, queue] : state_->queues) stats.waiting += queue.messages.size();
  return stats;
}

namespace {

// The core believes what a message says of its sender, so this is where it is made sure.
Task<http::Response> receive(std::shared_ptr<const RaftLane::Deliver> deliver, Sender who,
                             http::Request request) {
  auto messages = wire::decode_raft_body(as_bytes(request.body));
  if (!messages) co_return http::error_response(400, messages.error().text());
  for (const raft::Message& m : messages.value()) {
    if (m.from == who.replica) continue;
    co_return http::error_response(
        400, cat("a Raft message in the name of replica ", to_hex16(m.from.value()), ", sent by ",
                 who.node_id, ", which is replica ", to_hex16(who.replica.value())));
  }
  for (raft::Message& m : messages.value()) (*deliver)(std::move(m), who.node_id);
  co_return http::empty_response(204);
}

}  // namespace

void RaftLane::add_route(Server& server, Deliver deliver) {
  auto shared = std::make_shared<const Deliver>(std::move(deliver));
  RouteOptions options;
  options.body_bytes_max = wire::kRaftBodyMax;
  options.runs_to_its_end = true;  // it waits for nothing: no deadline to watch
  server.route(
      cat("POST ", kTarget), Lane::raft,
      [shared](Sender who, http::Request request) {
        return receive(shared, std::move(who), std::move(request));
      },
      options);
}

}  // namespace narad::peer

#include "internal/dispatch/dispatcher.h"

#include <map>
#include <optional>

#include "pkg/async/timeout.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::dispatch {

struct Dispatcher::State {
  State(Env& e, Options options, RecordSource& s, CommitTarget& t)
      : env(e), o(options), source(s), target(t), wake(e), idle(e), tasks(e) {}

  Task<void> run();
  Task<void> watch_source();
  Task<void> watch_routing();
  Task<void> read(ReadRequest request);
  Task<void> send(Send send);
  Task<void> confirm(ConfirmGone question);
  void note_gone_answer(const std::string& topic, const std::optional<Result<bool>>& answer);
  // What the plan wants to read, if the source has it.
  std::optional<ReadRequest> readable() const;
  void act();
  void poke() {
    dirty = true;
    wake.notify_all();
  }

  Env& env;
  const Options o;
  RecordSource& source;
  CommitTarget& target;
  std::optional<Plan> plan;  // once the source is open
  bool dirty = false;        // there was input since the last act()
  bool started = false;
  bool stopping = false;
  std::size_t sending = 0;
  std::string read_error;
  std::map<std::string, std::string> gone_errors;  // topic -> why nobody can say what became of it
  Nanos read_again{0};                             // after an error
  Event wake;
  Event idle;
  TaskGroup tasks;  // last: its destructor asserts that no task is left
};

Dispatcher::Dispatcher(Env& env, Options options, RecordSource& source, CommitTarget& target)
    : state_(std::make_unique<State>(env, options, source, target)) {}

Dispatcher::~Dispatcher() = default;

void Dispatcher::start() {
  NARAD_ASSERT(!state_->started);
  state_->started = true;
  state_->tasks.spawn("dispatch source", state_->watch_source());
  state_->tasks.spawn("dispatch routing", state_->watch_routing());
  state_->tasks.spawn("dispatch", state_->run());
}

Task<void> Dispatcher::stop() {
  State& self = *state_;
  self.stopping = true;
  self.poke();
  const Deadline deadline = Deadline::after(self.env, self.o.stop_grace);
  while (self.sending > 0 && !deadline.passed(self.env)) {
    co_await self.idle.wait_for(deadline.left(self.env));
  }
  co_await self.tasks.stop();
  if (self.plan) self.source.advance_checkpoint(self.plan->checkpoint());
}

PlanStats Dispatcher::stats() const {
  if (!state_->plan) return PlanStats{};
  return state_->plan->stats();
}

std::string Dispatcher::trouble() const {
  if (!state_->read_error.empty()) return state_->read_error;
  if (!state_->plan) return {};
  std::string trouble = state_->plan->trouble(state_->env.clock.mono());
  if (trouble.empty() && !state_->gone_errors.empty()) {
    trouble = state_->gone_errors.begin()->second;
  }
  return trouble;
}

Task<void> Dispatcher::State::watch_source() {
  while (true) {
    co_await source.changed().wait();
    poke();
  }
}

Task<void> Dispatcher::State::watch_routing() {
  while (true) {
    co_await target.routing_changed().wait();
    if (plan) plan->on_routing_changed();
    poke();
  }
}

Task<void> Dispatcher::State::run() {
  while (!stopping) {
    if (!source.is_open()) {
      co_await wake.wait();
      continue;
    }
    if (!plan) plan.emplace(o.plan, source.checkpoint());
    dirty = false;
    const Nanos now = env.clock.mono();
    if (const auto request = readable(); request && now >= read_again) {
      co_await read(*request);
      if (stopping) break;
      act();
      co_await yield(env);  // reading from memory never suspends; others want the loop too
      continue;
    }
    act();
    // Acting may ask for messages that were given up for want of memory: look again.
    const bool more = readable().has_value();
    if (more && env.clock.mono() >= read_again) continue;
    std::optional<Nanos> at = plan->wake_at();
    if (more && (!at || read_again < *at)) at = read_again;
    if (dirty) continue;
    if (at) {
      co_await wake.wait_for(*at - env.clock.mono());
    } else {
      co_await wake.wait();
    }
  }
}

std::optional<ReadRequest> Dispatcher::State::readable() const {
  auto request = plan->read_next();
  if (request && request->from >= source.durable_end()) request.reset();
  return request;
}

Task<void> Dispatcher::State::read(ReadRequest request) {
  auto records =
      co_await source.read(request.from, std::min(request.records_max, o.read_records_max),
                           std::min(request.bytes_max, o.read_bytes_max));
  if (records) {
    read_error.clear();
    plan->offer(records.value());
    co_return;
  }
  read_again = env.clock.mono() + o.plan.retry;
  if (read_error != records.error().text()) {
    read_error = records.error().text();
    NARAD_LOG_ERROR(env.log, "records cannot be read back for hand-over; trying again",
                    {"from", request.from}, {"error", records.error()});
  }
}

void Dispatcher::State::act() {
  Actions actions = plan->next_actions(env.clock.mono(), target);
  for (Send& next : actions.sends) {
    ++sending;
    tasks.spawn("dispatch send", send(std::move(next)));
  }
  for (ConfirmGone& question : actions.confirms) {
    tasks.spawn("dispatch confirm", confirm(std::move(question)));
  }
  source.advance_checkpoint(plan->checkpoint());
}

Task<void> Dispatcher::State::send(Send next) {
  const BatchId id = next.id;
  const TopicPartition to = next.to;
  const Incarnation incarnation = next.batch.incarnation;
  const Nanos sent_at = env.clock.mono();
  Task<Result<CommitOutcome>> call = target.commit(std::move(next.to), std::move(next.batch));
  auto outcome = co_await with_timeout(env, o.deadline, std::move(call));
  const Nanos now = env.clock.mono();
  // An answer counts only for so long after sending: what came later may be older than a new owner.
  const bool in_time = outcome && now - sent_at <= o.deadline;
  const bool committed = in_time && outcome->has_value();
  BatchResult result = BatchResult::committed;
  if (!committed) {
    const bool frozen = target.route(to, incarnation).frozen;
    result = frozen ? BatchResult::held_up : BatchResult::failed;
  }
  const Turn turn = plan->on_result(id, result, now);
  if (turn == Turn::began_failing) {
    const std::string why = outcome && !*outcome ? outcome->error().text() : "no answer in time";
    NARAD_LOG_WARN(env.log, "a partition takes no records; trying again",
                   {"partition", to_string(to)}, {"error", why});
  } else if (turn == Turn::recovered) {
    NARAD_LOG_INFO(env.log, "a partition takes records again", {"partition", to_string(to)});
  }
  --sending;
  if (stopping) {
    idle.notify_all();
  } else {
    poke();
  }
}

// Says once for each reason why records of an unknown topic have to be kept.
void Dispatcher::State::note_gone_answer(const std::string& topic,
                                         const std::optional<Result<bool>>& answer) {
  if (answer && answer->has_value()) {
    gone_errors.erase(topic);
    return;
  }
  std::string why = answer ? answer->error().text() : "no answer in time";
  std::string& noted = gone_errors[topic];
  if (noted == why) return;
  NARAD_LOG_WARN(env.log, "records of an unknown topic are kept: its deletion is not confirmed",
                 {"topic", topic}, {"why", why});
  noted = std::move(why);
}

Task<void> Dispatcher::State::confirm(ConfirmGone question) {
  Task<Result<bool>> call = target.confirm_gone(question.topic, question.incarnation);
  auto answer = co_await with_timeout(env, o.deadline, std::move(call));
  GoneAnswer gone = GoneAnswer::unknown;
  if (answer && answer->has_value()) gone = answer->value() ? GoneAnswer::gone : GoneAnswer::alive;
  note_gone_answer(question.topic, answer);
  const std::uint64_t before = plan->stats().discarded;
  plan->on_gone(question.topic, question.incarnation, gone, env.clock.mono());
  const std::uint64_t discarded = plan->stats().discarded - before;
  if (discarded > 0) {
    NARAD_LOG_WARN(env.log, "discarded records of a deleted topic", {"topic", question.topic},
                   {"incarnation", to_hex16(question.incarnation.value())}, {"records", discarded});
  }
  poke();
}

}  // namespace narad::dispatch

#pragma once
// For the tests of this directory: a broker that applies metadata commands for real, keeps what is
// produced, and answers consume and settle as the test says; and an Api over it.
#include <deque>
#include <map>

#include "internal/api/api.h"
#include "internal/metastore/apply.h"
#include "internal/security/credentials.h"
#include "pkg/base/text.h"
#include "pkg/env/net.h"
#include "pkg/metrics/narad_metrics.h"
#include "pkg/sim/solo.h"

namespace narad::api {

class FakeBroker final : public Broker {
 public:
  FakeBroker() {
    apply(metastore::RegisterMember{
        "n1", "127.0.0.1:7942", "127.0.0.1:7943", "boot", {"d1"}, UnixMillis(1)});
  }

  // ---- what the test looks at and sets
  ClusterInfo info;
  std::vector<MessagePtr> produced;
  std::optional<Error> refuse_produce, refuse_write, refuse_stats;
  std::vector<ConsumeRequest> consumes;
  std::optional<Error> refuse_consume;
  std::function<Task<void>()> before_consume;  // a long poll
  std::deque<LeasedMessage> queue;             // consume takes from its front
  std::vector<ReplayRequest> replays;
  std::map<Offset, StoredRecord> stored;
  std::optional<Error> refuse_replay;
  std::vector<std::pair<ReceiptHandle, SettleMode>> settled;
  std::map<std::string, Error> refuse_settle;  // by handle
  Readiness ready{true, false, {}};
  std::vector<std::string> calls;           // names of the writes, in order
  std::function<void()> before_put_schema;  // a rival that is faster
  metastore::Proposer* proposer = nullptr;  // of orders about moves
  Env* env = nullptr;
  ReportsByNode reports;
  std::vector<std::string> asked_for_reports;
  std::vector<TopicPartition> asked_for_rate;
  std::optional<std::uint64_t> written;  // into every partition, a second
  QuarantineByNode quarantined;
  std::vector<std::string> asked_for_quarantine;
  // What comes of orders about members and plans.
  std::vector<DrainVerdict> waiting;
  Result<DrainVerdict> verdict = Error(Errc::not_found, "member not found: n9");
  Result<DrainOutcome> departure = Error(Errc::not_found, "member not found: n9");
  Result<> cancellation = Error(Errc::not_found, "member not found: n9");
  Result<StopVerdict> stop_verdict = Error(Errc::not_found, "member not found: n9");
  Result<RebalanceOutcome> pass = RebalanceOutcome{};
  Result<Explanation> explanation = Error(Errc::not_found, "topic not found");
  std::function<void()> on_catch_up;  // what this node had not heard of
  std::size_t catch_ups = 0;

  metastore::CommandResult apply(const metastore::Command& command) {
    auto next = std::make_shared<metastore::State>(*view_);
    auto result = metastore::apply(*next, next->applied.next(), command);
    metastore::check_invariants(*next);
    view_ = next;
    return result;
  }
  Topic& edit(const std::string& name) {
    edited_ = *view_->topics.get(name);
    return edited_.topic;
  }
  void store_edit() { store_row(edited_); }
  void store_row(metastore::TopicRow row) {
    auto next = std::make_shared<metastore::State>(*view_);
    next->topics.put(std::make_shared<const metastore::TopicRow>(std::move(row)));
    view_ = next;
  }

  // ---- Broker
  metastore::ViewPtr view() const override { return view_; }
  Task<void> catch_up() override {
    ++catch_ups;
    if (on_catch_up) std::exchange(on_catch_up, {})();
    co_return;
  }
  Task<Result<Topic>> create_topic(metastore::TopicSpec spec) override {
    calls.push_back("create " + spec.name);
    if (refuse_write) co_return *refuse_write;
    metastore::CreateTopic c;
    c.name = spec.name;
    c.incarnation = Incarnation(++lives_);
    c.partitions = spec.partitions;
    c.retention_ms = spec.retention_ms;
    c.visibility_timeout_ms = spec.visibility_timeout_ms;
    c.max_in_flight_per_partition = spec.max_in_flight_per_partition;
    c.max_acked_ahead_per_partition = spec.max_acked_ahead_per_partition;
    c.created_at_s = 1'783'615'000;
    c.owner = spec.owner;
    c.schema = spec.schema;
    co_return topic_of(apply(c));
  }
  Task<Result<Topic>> alter_topic(std::string name, metastore::TopicPatch patch) override {
    calls.push_back("alter " + name);
    if (refuse_write) co_return *refuse_write;
    metastore::UpdateTopic c;
    c.name = name;
    c.incarnation = incarnation_of(name);
    c.retention_ms = patch.retention_ms;
    c.visibility_timeout_ms = patch.visibility_timeout_ms;
    c.max_in_flight_per_partition = patch.max_in_flight_per_partition;
    c.max_acked_ahead_per_partition = patch.max_acked_ahead_per_partition;
    c.partitions = patch.partitions;
    co_return topic_of(apply(c));
  }
  Task<Result<void>> delete_topic(std::string name) override {
    calls.push_back("delete " + name);
    if (refuse_write) co_return *refuse_write;
    auto result = apply(metastore::DeleteTopic{name, incarnation_of(name)});
    if (!result.done()) co_return metastore::to_error(result);
    co_return ok();
  }
  Task<Result<void>> put_schema(std::string name, Incarnation incarnation, std::uint32_t version,
                                std::string schema) override {
    calls.push_back(cat("put_schema ", name, " ", version));
    if (before_put_schema) std::exchange(before_put_schema, {})();
    auto result = apply(metastore::PutSchema{name, incarnation, version, schema});
    if (!result.done()) co_return metastore::to_error(result);
    co_return ok();
  }
  Task<Result<std::vector<PartitionStat>>> partition_stats(
      std::string topic, std::optional<PartitionId> partition) override {
    if (refuse_stats) co_return *refuse_stats;
    std::vector<PartitionStat> out;
    const std::uint32_t count = view_->topics.find(topic)->topic.partitions;
    for (std::uint32_t p = 0; p < count; ++p) {
      if (partition && partition->value() != p) continue;
      PartitionStat s;
      s.index = PartitionId(p);
      s.segments = 1;
      s.next_offset = s.high_watermark = Offset(p * 2);
      s.size_bytes = 180;
      if (p == 0) s.oldest_segment_at_s = 1'783'615'000;
      if (p == 0) s.owner_node = "n1";
      out.push_back(s);
    }
    co_return out;
  }
  Task<Result<void>> produce(MessagePtr message) override {
    if (refuse_produce) co_return *refuse_produce;
    produced.push_back(std::move(message));
    co_return ok();
  }
  Task<Result<void>> produce_batch(std::vector<MessagePtr> messages) override {
    if (refuse_produce) co_return *refuse_produce;
    for (MessagePtr& m : messages) produced.push_back(std::move(m));
    co_return ok();
  }
  Task<Result<std::vector<LeasedMessage>>> consume(ConsumeRequest request) override {
    consumes.push_back(request);
    if (before_consume) co_await before_consume();
    if (refuse_consume) co_return *refuse_consume;
    std::vector<LeasedMessage> out;
    while (out.size() < request.max && !queue.empty()) {
      out.push_back(std::move(queue.front()));
      queue.pop_front();
    }
    co_return out;
  }
  Task<Result<std::optional<StoredRecord>>> replay(ReplayRequest request) override {
    replays.push_back(request);
    if (refuse_replay) co_return *refuse_replay;
    const auto at = stored.find(request.offset);
    if (at == stored.end()) co_return std::optional<StoredRecord>();
    co_return std::optional<StoredRecord>(at->second);
  }
  Task<Result<void>> settle(std::string, Incarnation, ReceiptHandle handle,
                            SettleMode mode) override {
    co_return settle_one(handle, mode);
  }
  Task<std::vector<Result<void>>> settle_batch(std::string, Incarnation,
                                               std::vector<ReceiptHandle> handles,
                                               SettleMode mode) override {
    std::vector<Result<void>> out;
    for (const ReceiptHandle& h : handles) out.push_back(settle_one(h, mode));
    co_return out;
  }
  Task<Result<metastore::StartAnswer>> start_move(metastore::MoveWish wish) override {
    return metastore::start_move(*env, *proposer, std::move(wish));
  }
  Task<Result<metastore::AbortAnswer>> abort_move(metastore::AbortWish wish,
                                                  std::string why) override {
    return metastore::abort_move(*env, *proposer, std::move(wish), std::move(why));
  }
  Task<Result<metastore::RateAnswer>> set_move_rate(
      std::optional<std::uint64_t> bytes_per_second) override {
    return metastore::set_move_rate(*proposer, bytes_per_second);
  }
  Task<Result<metastore::PauseAnswer>> pause_moves(metastore::PauseWish wish) override {
    return metastore::pause_moves(*proposer, std::move(wish));
  }
  Task<std::optional<std::uint64_t>> write_rate(TopicPartition partition, Nanos) override {
    asked_for_rate.push_back(std::move(partition));
    co_return written;
  }
  Task<ReportsByNode> move_reports(std::vector<std::string> nodes, Nanos) override {
    asked_for_reports = std::move(nodes);
    co_return reports;
  }
  Task<QuarantineByNode> quarantine(std::vector<std::string> nodes, Nanos) override {
    asked_for_quarantine = std::move(nodes);
    co_return quarantined;
  }
  Task<std::vector<DrainVerdict>> drains() override { co_return waiting; }
  Task<Result<DrainVerdict>> drain_verdict(std::string node, bool wal_lost) override {
    calls.push_back(cat("verdict ", node, wal_lost ? " wal_lost" : ""));
    co_return verdict;
  }
  Task<Result<DrainOutcome>> decommission(std::string node, bool wal_lost) override {
    calls.push_back(cat("decommission ", node, wal_lost ? " wal_lost" : ""));
    co_return departure;
  }
  Task<Result<>> cancel_decommission(std::string node) override {
    calls.push_back(cat("cancel ", node));
    co_return cancellation;
  }
  Task<Result<StopVerdict>> safe_to_stop(std::string node) override {
    calls.push_back(cat("safe_to_stop ", node));
    co_return stop_verdict;
  }
  Task<Result<RebalanceOutcome>> rebalance(bool dry_run) override {
    calls.push_back(dry_run ? "rebalance dry" : "rebalance");
    co_return pass;
  }
  Task<Result<Explanation>> explain(TopicPartition partition) override {
    calls.push_back(cat("explain ", to_string(partition)));
    co_return explanation;
  }
  ClusterInfo cluster_info() const override { return info; }
  Readiness readiness() const override { return ready; }

 private:
  static Result<Topic> topic_of(const metastore::CommandResult& result) {
    if (!result.done()) return metastore::to_error(result);
    return std::get<Topic>(result.row);
  }
  Incarnation incarnation_of(const std::string& name) const {
    const metastore::TopicRow* row = view_->topics.find(name);
    return row != nullptr ? row->topic.incarnation : Incarnation(0);
  }
  Result<void> settle_one(ReceiptHandle handle, SettleMode mode) {
    settled.emplace_back(handle, mode);
    const auto refusal = refuse_settle.find(to_string(handle));
    if (refusal != refuse_settle.end()) return refusal->second;
    return ok();
  }

  metastore::ViewPtr view_ = std::make_shared<const metastore::State>();
  metastore::TopicRow edited_;
  std::uint64_t lives_ = 100;
};

// The way to the same state for users.
class FakeProposer final : public metastore::Proposer {
 public:
  FakeProposer(Env& env, FakeBroker& broker) : broker_(broker), changed_(env) {}
  std::function<void()> before_apply;  // a rival that is faster
  std::function<void()> before_barrier;
  std::optional<Error> refuse_barrier, lose_answer;  // the command is applied, and nobody hears it

  Task<Result<metastore::CommandResult>> propose(metastore::Command command) override {
    broker_.calls.push_back(std::string(metastore::op_name(command)));
    if (broker_.refuse_write) co_return *broker_.refuse_write;
    if (before_apply) std::exchange(before_apply, {})();
    auto result = broker_.apply(command);
    if (lose_answer) co_return *lose_answer;
    co_return result;
  }
  metastore::ViewPtr view() const override { return broker_.view(); }
  Event& changed() override { return changed_; }
  Task<Result<RaftIndex>> barrier(Nanos) override {
    if (before_barrier) before_barrier();
    if (refuse_barrier) co_return *refuse_barrier;
    co_return view()->applied;
  }
  metastore::LeaderView leader() const override { return {"n1", true, 1}; }
  bool caught_up() const override { return true; }

 private:
  FakeBroker& broker_;
  Event changed_;
};

inline security::Options security_off() {
  security::Options options;
  options.enabled = false;
  return options;
}

struct Fixture {
  sim::Solo solo;
  metrics::Registry registry;
  FakeBroker broker;
  FakeProposer proposer{solo.env(), broker};
  security::Security security;
  std::unique_ptr<Api> api;
  std::map<std::string, std::string> headers;  // of the following requests

  explicit Fixture(Options options = {}, security::Options secured = security_off())
      : security(solo.env(), proposer, std::move(secured)) {
    metrics::declare_narad_metrics(registry);
    broker.env = &solo.env();
    broker.proposer = &proposer;
    api = std::make_unique<Api>(solo.env(), broker, security, registry, options);
  }
  ~Fixture() {
    solo.run([this](Env&) { return security.stop(); });
  }

  http::Response call(http::Method method, std::string target, std::string body = {}) {
    http::Request request;
    request.method = method;
    request.target = std::move(target);
    request.body = std::move(body);
    request.peer = std::make_shared<const Endpoint>(Endpoint{"127.0.0.1", 4242});
    for (const auto& [name, value] : headers) request.headers.add(name, value);
    request.match = api->router().match(method, request.path());
    return solo.run([&](Env&) { return api->handle(std::move(request)); });
  }
  http::Response put(std::string target, std::string body) {
    return call(http::Method::put, std::move(target), std::move(body));
  }
  http::Response get(std::string target) { return call(http::Method::get, std::move(target)); }
  http::Response post(std::string target, std::string body = {}) {
    return call(http::Method::post, std::move(target), std::move(body));
  }
  http::Response patch(std::string target, std::string body) {
    return call(http::Method::patch, std::move(target), std::move(body));
  }
  http::Response remove(std::string target) {
    return call(http::Method::delete_, std::move(target));
  }
  // A topic with the defaults.
  void topic(const std::string& name, std::string more = {}) {
    const auto response = post("/v1/topics", cat("{\"name\":\"", name, "\"", more, "}"));
    NARAD_ASSERT(response.status == 201, response.body);
  }
  std::string error(const http::Response& response) const {
    constexpr std::string_view kPrefix = "{\"error\":\"";
    NARAD_ASSERT(response.body.starts_with(kPrefix) && response.body.ends_with("\"}\n"),
                 response.body);
    return response.body.substr(kPrefix.size(), response.body.size() - kPrefix.size() - 3);
  }
};

// Of "pw", at the lowest cost there is.
inline const std::string kHashOfPw = "$2b$04$abcdefghijklmnopqrstuuyvPXIbu7xe6/CED2DzX8z6Si09MlzlW";

// With users, whose passwords are all "pw". Root is "admin".
struct SecuredFixture : Fixture {
  explicit SecuredFixture(security::Options secured = {}) : Fixture(Options{}, std::move(secured)) {
    add("admin", {}, true);
  }
  void add(const std::string& name, std::vector<Grant> grants, bool root = false) {
    const auto result = broker.apply(metastore::CreateUser{name, kHashOfPw, std::move(grants), root,
                                                           UnixMillis(1'783'615'000'123)});
    NARAD_ASSERT(result.done(), result.text);
  }
  void as(const std::string& user, const std::string& password = "pw") {
    headers["Authorization"] = security::basic_header(user, password);
  }
};

inline LeasedMessage leased(std::uint32_t partition, std::uint64_t offset, std::uint64_t nonce,
                            std::string key, std::string payload) {
  LeasedMessage m;
  m.record.offset = Offset(offset);
  m.record.commit_time = UnixMillis(1'783'615'560'999);
  m.record.key = std::move(key);
  m.record.payload = std::move(payload);
  m.handle = ReceiptHandle{PartitionId(partition), Offset(offset), nonce};
  return m;
}

}  // namespace narad::api

// What the handlers themselves cost, per request and message, with a broker that does nothing: no
// socket, no disk. Each as a multiple of an empty coroutine on the same loop.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>

#include "internal/api/api.h"
#include "internal/metastore/apply.h"
#include "internal/security/credentials.h"
#include "internal/security/password.h"
#include "internal/security/test_proposer.h"
#include "pkg/env/net.h"
#include "pkg/metrics/narad_metrics.h"
#include "pkg/sim/solo.h"

namespace narad::api {
namespace {

class NullBroker final : public Broker {
 public:
  NullBroker() {
    auto state = std::make_shared<metastore::State>();
    const auto apply = [&](const metastore::Command& c) {
      metastore::apply(*state, state->applied.next(), c);
    };
    apply(metastore::RegisterMember{"n1", "h:1", "c:1", "b", {"d"}, UnixMillis(1)});
    for (int i = 0; i < 10'000; ++i) {
      metastore::CreateTopic c;
      c.name = "topic-" + std::to_string(i);
      c.incarnation = Incarnation(static_cast<std::uint64_t>(i) + 1);
      c.partitions = 3;
      c.max_in_flight_per_partition = c.max_acked_ahead_per_partition = 1024;
      apply(c);
    }
    view_ = state;
  }
  metastore::ViewPtr view() const override { return view_; }
  Task<Result<Topic>> create_topic(metastore::TopicSpec) override { co_return no(); }
  Task<Result<Topic>> alter_topic(std::string, metastore::TopicPatch) override { co_return no(); }
  Task<Result<void>> delete_topic(std::string) override { co_return no(); }
  Task<Result<void>> put_schema(std::string, Incarnation, std::uint32_t, std::string) override {
    co_return no();
  }
  Task<Result<std::vector<PartitionStat>>> partition_stats(std::string,
                                                           std::optional<PartitionId>) override {
    co_return no();
  }
  Task<Result<void>> produce(MessagePtr) override { co_return ok(); }
  Task<Result<void>> produce_batch(std::vector<MessagePtr>) override { co_return ok(); }
  Task<Result<std::vector<LeasedMessage>>> consume(ConsumeRequest request) override {
    std::vector<LeasedMessage> out(request.max);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].record.offset = Offset(i);
      out[i].record.key = "customer-42";
      out[i].record.payload = payload;
      out[i].handle = ReceiptHandle{PartitionId(1), Offset(i), 77};
    }
    co_return out;
  }
  Task<Result<std::optional<StoredRecord>>> replay(ReplayRequest) override { co_return no(); }
  Task<Result<void>> settle(std::string, Incarnation, ReceiptHandle, SettleMode) override {
    co_return ok();
  }
  Task<std::vector<Result<void>>> settle_batch(std::string, Incarnation,
                                               std::vector<ReceiptHandle> handles,
                                               SettleMode) override {
    co_return std::vector<Result<void>>(handles.size(), ok());
  }
  Task<Result<metastore::StartAnswer>> start_move(metastore::MoveWish) override { co_return no(); }
  Task<std::optional<std::uint64_t>> write_rate(TopicPartition, Nanos) override {
    co_return std::nullopt;
  }
  Task<Result<metastore::AbortAnswer>> abort_move(metastore::AbortWish, std::string) override {
    co_return no();
  }
  Task<Result<metastore::RateAnswer>> set_move_rate(std::optional<std::uint64_t>) override {
    co_return no();
  }
  Task<Result<metastore::PauseAnswer>> pause_moves(metastore::PauseWish) override {
    co_return no();
  }
  Task<ReportsByNode> move_reports(std::vector<std::string>, Nanos) override {
    co_return ReportsByNode();
  }
  Task<std::vector<DrainVerdict>> drains() override { co_return std::vector<DrainVerdict>(); }
  Task<Result<DrainVerdict>> drain_verdict(std::string, bool) override { co_return no(); }
  Task<Result<DrainOutcome>> decommission(std::string, bool) override { co_return no(); }
  Task<Result<>> cancel_decommission(std::string) override { co_return no(); }
  Task<QuarantineByNode> quarantine(std::vector<std::string>, Nanos) override {
    co_return QuarantineByNode();
  }
  Task<Result<StopVerdict>> safe_to_stop(std::string) override { co_return no(); }
  Task<Result<RebalanceOutcome>> rebalance(bool) override { co_return no(); }
  Task<Result<Explanation>> explain(TopicPartition) override { co_return no(); }
  Readiness readiness() const override { return {}; }

  std::string payload = "{\"id\":1,\"text\":\"" + std::string(230, 'x') + "\"}";

 private:
  static Error no() { return Error(Errc::internal, "not here"); }
  metastore::ViewPtr view_;
};

security::Options secured(bool enabled) {
  security::Options options;
  options.enabled = enabled;
  return options;
}

constexpr int kRounds = 100;

struct Bench {
  sim::Solo solo;
  metrics::Registry registry;
  NullBroker broker;
  security::TestProposer proposer{solo.env()};
  security::Security off{solo.env(), proposer, secured(false)};
  security::Security on{solo.env(), proposer, secured(true)};
  std::unique_ptr<Api> api;
  std::unique_ptr<Api> guarded;
  std::shared_ptr<const Endpoint> peer = std::make_shared<const Endpoint>(Endpoint{"h", 1});

  Bench() {
    // One user who may produce and consume everything.
    const std::vector<Grant> grants{{GrantAction::produce, {"other-*", "topic-*"}},
                                    {GrantAction::consume, {"other-*", "topic-*"}}};
    proposer.apply(metastore::CreateUser{"svc", security::hash_password("pw", {1, 2}).value(),
                                         grants, false, UnixMillis(1)});
    metrics::declare_narad_metrics(registry);
    api = std::make_unique<Api>(solo.env(), broker, off, registry, Options{});
    guarded = std::make_unique<Api>(solo.env(), broker, on, registry, Options{});
    const std::string header = security::basic_header("svc", "pw");
    const auto user = solo.run([&](Env&) { return on.authenticator().identify(header); });
    if (!user) std::printf("unexpected: %s\n", user.error().text().c_str());
  }
  ~Bench() {
    solo.run([this](Env&) { return on.stop(); });
    solo.run([this](Env&) { return off.stop(); });
  }

  static Task<void> empty(Api&, http::Request) { co_return; }
  static Task<void> handle(Api& api, http::Request request) {
    const http::Response response = co_await api.handle(std::move(request));
    if (response.status >= 300) std::printf("unexpected: %s", response.body.c_str());
  }

  // Nanoseconds for one request, the best of many short rounds: on a machine with other work some
  // of them are left alone.
  template <class Code>
  double nanoseconds(Api& to, Code code, const http::Request& request, int count) {
    const int each = count / kRounds;
    double best = 1e18;
    for (int round = 0; round < kRounds; ++round) {
      asio::io_context loop;
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < each; ++i) {
        http::Request copy = request;
        copy.match = to.router().match(copy.method, copy.path());
        asio::co_spawn(loop, code(to, std::move(copy)), asio::detached);
        loop.restart();
        loop.run();
      }
      const std::chrono::duration<double, std::nano> took =
          std::chrono::steady_clock::now() - begin;
      best = std::min(best, took.count() / each);
    }
    return best;
  }

  void report(const char* name, http::Method method, std::string target, std::string body,
              int messages, int count) {
    http::Request request;
    request.method = method;
    request.target = std::move(target);
    request.body = std::move(body);
    request.peer = peer;
    request.headers.add("Content-Type", "application/vnd.narad.batch");
    if (name == std::string_view("ack:batch")) {
      request.headers.clear();
    }
    request.headers.add("Authorization", security::basic_header("svc", "pw"));
    const double base = nanoseconds(*api, empty, request, count);
    const double full = nanoseconds(*api, handle, request, count);
    const double with_user = nanoseconds(*guarded, handle, request, count);
    std::printf(
        "%-14s %8.0f ns a request (%.1f x empty), %7.1f ns a message; with a user %+.0f ns\n", name,
        full, full / base, (full - base) / messages, with_user - full);
  }
};

std::string u32(std::size_t n) {
  std::string out(4, '\0');
  for (int i = 0; i < 4; ++i) out[static_cast<std::size_t>(i)] = static_cast<char>(n >> (8 * i));
  return out;
}

}  // namespace
}  // namespace narad::api

int main() {
  using namespace narad;
  using namespace narad::api;
  Bench bench;
  const std::string& payload = bench.broker.payload;
  std::string batch = "NRB1" + u32(1000), handles = R"({"mode":"ack","handles":[)";
  for (int i = 0; i < 1000; ++i) {
    batch += u32(0) + u32(payload.size()) + payload;
    handles += std::string(i == 0 ? "" : ",") + "\"1:" + std::to_string(i) + ":77\"";
  }
  handles += "]}";
  const std::string topic = "/v1/topics/topic-7777/";
  bench.report("produce", http::Method::post, topic + "produce?key=customer-42", payload, 1, 20000);
  bench.report("consume", http::Method::get, topic + "consume?wait=1s", "", 1, 20000);
  bench.report("ack", http::Method::post, topic + "ack?receipt_handle=1%3A2%3A77", "", 1, 20000);
  bench.report("produce:batch", http::Method::post, topic + "produce:batch", batch, 1000, 200);
  bench.report("consume?max", http::Method::get, topic + "consume?max=1000", "", 1000, 200);
  bench.report("ack:batch", http::Method::post, topic + "ack:batch", handles, 1000, 200);
}

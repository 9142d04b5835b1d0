#include "internal/node/remote_owners.h"

#include <utility>

#include "pkg/base/text.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;

// The dispatcher counts an answer only so long after sending (decisions.md, "Cluster plane").
constexpr Nanos kCommitDeadline = 10s;
constexpr Nanos kReadDeadline = 5s;
constexpr Nanos kWakeDeadline = 2s;

// A refusal of the plane itself carries no code.
Error refusal(const http::Response& response) {
  Error error = wire::decode_error(response.body);
  if (error.code() != Errc::internal || response.status == 500) return error;
  const Errc code = response.status == 503   ? Errc::unavailable
                    : response.status == 403 ? Errc::forbidden
                    : response.status == 400 ? Errc::invalid_argument
                                             : Errc::internal;
  return Error(code, error.text());
}

}  // namespace

Task<Result<std::string>> RemoteOwners::ask(std::string node, peer::Lane lane, std::string target,
                                            std::string body, Nanos deadline) {
  peer::Call call(http::Method::post, std::move(target), std::move(body));
  auto answer = co_await caller_.call(node, lane, std::move(call), deadline);
  if (!answer) {
    co_return Error(Errc::unreachable,
                    cat("node ", node, " did not answer: ", answer.error().text()));
  }
  if (answer.value().status == 200) co_return std::move(answer.value().body);
  co_return refusal(answer.value());
}

Task<Result<CommitOutcome>> RemoteOwners::commit(std::string node, wire::CommitCall call) {
  NARAD_CO_TRY(auto body, co_await ask(std::move(node), peer::Lane::data, "/peer/v1/commit",
                                       wire::encode(call), kCommitDeadline));
  co_return wire::decode_commit_outcome(body);
}

Task<Result<std::vector<api::LeasedMessage>>> RemoteOwners::consume(std::string node,
                                                                    wire::ConsumeCall call,
                                                                    Nanos deadline) {
  NARAD_CO_TRY(auto body, co_await ask(std::move(node), peer::Lane::data, "/peer/v1/consume",
                                       wire::encode(call), deadline));
  NARAD_CO_TRY(auto records, wire::decode_leased(body));
  std::vector<api::LeasedMessage> messages;
  messages.reserve(records.size());
  for (auto& r : records) messages.push_back({std::move(r.record), r.handle});
  co_return messages;
}

Task<Result<std::vector<Result<void>>>> RemoteOwners::settle(std::string node,
                                                             wire::SettleCall call) {
  const std::size_t count = call.handles.size();
  NARAD_CO_TRY(auto body, co_await ask(std::move(node), peer::Lane::data, "/peer/v1/settle",
                                       wire::encode(call), kReadDeadline));
  NARAD_CO_TRY(auto outcomes, wire::decode_settled(body));
  if (outcomes.size() != count) {
    co_return Error(Errc::internal,
                    cat("asked about ", count, " handles, answered about ", outcomes.size()));
  }
  co_return outcomes;
}

Task<Result<std::optional<StoredRecord>>> RemoteOwners::replay(std::string node,
                                                               wire::ReplayCall call) {
  NARAD_CO_TRY(auto body, co_await ask(std::move(node), peer::Lane::data, "/peer/v1/replay",
                                       wire::encode(call), kReadDeadline));
  co_return wire::decode_replayed(body);
}

Task<Result<std::vector<api::PartitionStat>>> RemoteOwners::stats(std::string node,
                                                                  wire::StatsCall call) {
  const std::string owner = node;
  NARAD_CO_TRY(auto body, co_await ask(std::move(node), peer::Lane::data, "/peer/v1/stats",
                                       wire::encode(call), kReadDeadline));
  NARAD_CO_TRY(auto answer, wire::decode_stats_answer(body));
  std::vector<api::PartitionStat> stats;
  stats.reserve(answer.size());
  for (const wire::PartitionStat& s : answer) {
    stats.push_back({s.index, s.segments, s.oldest_offset, s.next_offset, s.high_watermark,
                     s.size_bytes, s.oldest_segment_at_s, owner});
  }
  co_return stats;
}

Task<Result<void>> RemoteOwners::interest(std::string node, wire::InterestCall call) {
  NARAD_CO_TRY(co_await ask(std::move(node), peer::Lane::control, "/peer/v1/interest",
                            wire::encode(call), kWakeDeadline));
  co_return ok();
}

Task<Result<void>> RemoteOwners::wake(std::string node, wire::WakeCall call) {
  NARAD_CO_TRY(co_await ask(std::move(node), peer::Lane::control, "/peer/v1/wake",
                            wire::encode(call), kWakeDeadline));
  co_return ok();
}

}  // namespace narad::node

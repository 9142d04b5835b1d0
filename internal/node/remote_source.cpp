#include "internal/node/remote_source.h"

#include <utility>

#include "internal/api/status.h"
#include "internal/wire/broker_messages.h"
#include "pkg/base/text.h"
#include "pkg/http/query.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;
using peer::Lane;

constexpr Nanos kLeaderDeadline = 5s;

// What the caller should do about a status; the code in the body only where the status leaves it
// open. A refusal of the plane itself (an older release, a stranger, its deadline) carries none.
Errc code_of(int status, Errc said) {
  if (status == 503 || status == 403 || status == 429) return Errc::unavailable;
  if (said != Errc::internal && api::status_of(said) == status) return said;
  if (status == 400 || status == 413) return Errc::invalid_argument;
  if (status == 404) return Errc::not_found;
  if (status == 409) return Errc::conflict;
  if (status == 410) return Errc::gone;
  if (status == 421) return Errc::not_owner;
  return Errc::internal;
}

Error refusal(const std::string& node, const http::Response& response) {
  const Error said = wire::decode_error(response.body);
  return Error(code_of(response.status, said.code()), cat("node ", node, ": ", said.text()));
}
Error senseless(const std::string& node, std::string_view why) {
  return Error(Errc::internal, cat("node ", node, " answered what makes no sense: ", why));
}

struct Asked {
  Lane lane;
  Nanos deadline;
};

Task<Result<std::string>> ask_node(peer::Caller& caller, std::string node, Asked how,
                                   peer::Call call) {
  auto answer = co_await caller.call(node, how.lane, std::move(call), how.deadline);
  if (!answer) {
    co_return Error(Errc::unreachable,
                    cat("node ", node, " did not answer: ", answer.error().text()));
  }
  if (answer.value().status == 200) co_return std::move(answer.value().body);
  co_return refusal(node, answer.value());
}

peer::Call get(std::string target) { return {http::Method::get, std::move(target)}; }

std::string partition_path(const TopicPartition& partition) {
  return cat("/peer/v1/partitions/", http::encode_component(partition.topic), "/",
             partition.partition);
}
std::string move_query(const wire::MoveRef& move) {
  return cat("?move=", move.move_id, "&incarnation=", to_hex16(move.incarnation.value()));
}

// What was understood; or that it was not.
template <class T>
Result<T> understood(const std::string& node, Result<T> read) {
  if (!read) return senseless(node, read.error().text());
  return read;
}

Result<wire::Listing> about(const std::string& node, const wire::MoveRef& move,
                            Result<wire::Listing> listing) {
  if (!listing) return senseless(node, listing.error().text());
  if (listing.value().move_id != move.move_id || listing.value().incarnation != move.incarnation) {
    return senseless(node, "a listing for another move");
  }
  return listing;
}

}  // namespace

Task<Result<wire::Listing>> RemoteSource::listing(std::string node, wire::MoveRef move) {
  if (node == self_) co_return co_await own_.listing(std::move(node), std::move(move));
  co_return co_await ask_for_listing(caller_, std::move(node), std::move(move));
}

Task<Result<wire::Listing>> ask_for_listing(peer::Caller& caller, std::string node,
                                            wire::MoveRef move, Nanos deadline) {
  peer::Call call = get(cat(partition_path(move.partition), "/listing", move_query(move)));
  const Asked how{Lane::data, deadline};
  NARAD_CO_TRY(auto body, co_await ask_node(caller, node, how, std::move(call)));
  co_return about(node, move, wire::decode_listing(body));
}

Task<Result<std::string>> RemoteSource::chunk(std::string node, wire::MoveRef move, Offset base,
                                              std::uint64_t from, std::uint64_t length) {
  if (node == self_)
    co_return co_await own_.chunk(std::move(node), std::move(move), base, from, length);
  peer::Call call = get(cat(partition_path(move.partition), "/segments/", base, move_query(move),
                            "&from=", from, "&len=", length));
  const Asked how{Lane::bulk, moves::kChunkDeadline};
  NARAD_CO_TRY(auto body, co_await ask_node(caller_, node, how, std::move(call)));
  if (body.size() > length) co_return senseless(node, "more bytes than were asked for");
  co_return body;
}

Task<Result<wire::SegmentDigests>> RemoteSource::digests(std::string node, wire::MoveRef move,
                                                         Offset base) {
  if (node == self_) co_return co_await own_.digests(std::move(node), std::move(move), base);
  peer::Call call =
      get(cat(partition_path(move.partition), "/segments/", base, "/digests", move_query(move)));
  const Asked how{Lane::data, moves::kListingDeadline};
  NARAD_CO_TRY(auto body, co_await ask_node(caller_, node, how, std::move(call)));
  co_return understood(node, wire::decode_segment_digests(body));
}

Task<Result<wire::FreezeAnswer>> RemoteSource::freeze(std::string node,
                                                      wire::FreezeRequest request) {
  if (node == self_) co_return co_await own_.freeze(std::move(node), std::move(request));
  peer::Call call(http::Method::post, cat(partition_path(request.move.partition), "/freeze"),
                  wire::encode(request));
  const Asked how{Lane::control, moves::kFreezeDeadline};
  NARAD_CO_TRY(auto body, co_await ask_node(caller_, node, how, std::move(call)));
  auto answer = understood(node, wire::decode_freeze_answer(body));
  if (!answer || !answer.value().listing) co_return answer;
  NARAD_CO_TRY(about(node, request.move, *answer.value().listing));
  co_return answer;
}

Task<Result<wire::SilenceAnswer>> RemoteLeader::ask(std::string leader, std::string node) {
  if (leader == self_) co_return co_await own_(std::move(node));
  peer::Call call = get(cat("/peer/v1/members/", http::encode_component(node), "/silence"));
  const Asked how{Lane::control, kLeaderDeadline};
  NARAD_CO_TRY(auto body, co_await ask_node(caller_, leader, how, std::move(call)));
  co_return understood(leader, wire::decode_silence_answer(body));
}

Task<Result<Nanos>> RemoteLeader::silence(std::string node) {
  const std::string leader = leader_();
  if (leader.empty()) co_return Error(Errc::unavailable, "no leader is known");
  NARAD_CO_TRY(const auto answer, co_await ask(leader, std::move(node)));
  co_return std::chrono::milliseconds(answer.silent_ms);
}

Task<Result<wire::MoveReports>> ask_for_moves(peer::Caller& caller, std::string node,
                                              Nanos deadline) {
  const Asked how{Lane::control, deadline};
  NARAD_CO_TRY(auto body, co_await ask_node(caller, node, how, get("/peer/v1/moves")));
  co_return understood(node, wire::decode_move_reports(body));
}

Task<Result<wire::SetAsideCopies>> ask_for_quarantine(peer::Caller& caller, std::string node,
                                                      Nanos deadline) {
  const Asked how{Lane::control, deadline};
  NARAD_CO_TRY(auto body, co_await ask_node(caller, node, how, get("/peer/v1/quarantine")));
  co_return understood(node, wire::decode_set_aside_copies(body));
}

}  // namespace narad::node

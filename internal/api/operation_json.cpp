#include "internal/api/operation_json.h"

#include <utility>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/json/writer.h"

namespace narad::api {
namespace {

void write_counts(json::Writer& w, const DrainVerdict& v) {
  w.member("leaving", v.leaving);
  w.member("partitions", v.partitions).member("unused", v.unused).member("inbound", v.inbound);
}

void write_reasons(json::Writer& w, const DrainVerdict& v) {
  w.key("reasons").begin_array();
  for (const DrainReason& r : v.reasons) {
    w.begin_object().member("rule", to_string(r.rule)).member("detail", r.detail);
    w.member("hopeless", r.hopeless).end_object();
  }
  w.end_array();
}

void write_partition(json::Writer& w, const TopicPartition& partition) {
  w.member("topic", partition.topic).member("partition", partition.partition);
}

void write_copy(json::Writer& w, const std::string& node, const SetAsideCopy& copy) {
  w.begin_object().member("node", node).member("kind", to_string(copy.kind));
  w.member("topic", copy.topic);
  if (copy.partition) w.member("partition", *copy.partition);
  w.member("disk", copy.disk).member("path", copy.path).member("bytes", copy.bytes);
  if (!copy.why.empty()) w.member("why", copy.why);
  if (copy.since.value() > 0) w.member("since", copy.since.value() / 1000);
  w.end_object();
}

}  // namespace

void write_drain(json::Writer& w, const DrainVerdict& verdict) {
  w.key("drain").begin_object();
  write_counts(w, verdict);
  write_reasons(w, verdict);
  w.end_object();
  w.key("decommission_blocked").begin_array();
  for (const DrainReason& r : verdict.reasons) w.value(to_string(r.rule));
  w.end_array();
}

std::string verdict_body(const DrainVerdict& verdict) {
  // What holds already is granted again.
  const bool possible = verdict.draining || verdict.leaving || !verdict.hopeless();
  json::Writer w;
  w.begin_object().member("node", verdict.node).member("possible", possible);
  w.member("draining", verdict.draining);
  write_counts(w, verdict);
  write_reasons(w, verdict);
  w.end_object();
  return w.take() + "\n";
}

Refusal hopeless_drain(const DrainVerdict& verdict) {
  NARAD_ASSERT(verdict.hopeless());
  Refusal refusal;
  refusal.text = cat("member ", verdict.node, " cannot be decommissioned: ");
  for (const DrainReason& r : verdict.reasons) {
    if (!r.hopeless) continue;
    if (!refusal.reasons.empty()) refusal.text += "; ";
    refusal.text += r.detail;
    refusal.reasons.push_back({std::string(to_string(r.rule)), r.detail});
  }
  refusal.code = refusal.reasons.front().rule;
  return refusal;
}

std::string stop_body(const StopVerdict& verdict) {
  json::Writer w;
  w.begin_object().member("node", verdict.node).member("safe", verdict.safe());
  w.key("reasons").begin_array();
  for (const StopReason& r : verdict.reasons) {
    w.begin_object().member("rule", to_string(r.rule)).member("detail", r.detail).end_object();
  }
  w.end_array().end_object();
  return w.take() + "\n";
}

std::string quarantine_body(const QuarantineByNode& quarantined) {
  json::Writer w;
  w.begin_object().key("copies").begin_array();
  std::uint64_t left_out = 0;
  for (const auto& [node, answer] : quarantined) {
    if (!answer) continue;
    left_out += answer.value().left_out;
    for (const SetAsideCopy& copy : answer.value().copies) write_copy(w, node, copy);
  }
  w.end_array().member("left_out", left_out).key("unanswered").begin_array();
  for (const auto& [node, answer] : quarantined) {
    if (answer) continue;
    w.begin_object().member("node", node).member("error", answer.error().text()).end_object();
  }
  w.end_array().end_object();
  return w.take() + "\n";
}

std::string rebalance_body(const RebalanceOutcome& outcome, bool dry_run) {
  json::Writer w;
  w.begin_object().member("dry_run", dry_run).key("cleared").begin_array();
  for (const ClearedTarget& c : outcome.cleared) {
    w.begin_object();
    write_partition(w, c.partition);
    w.member("to", c.to).member("reason", c.reason).end_object();
  }
  w.end_array().key("moves").begin_array();
  for (const PlannedMove& m : outcome.moves) {
    w.begin_object();
    write_partition(w, m.partition);
    w.member("from", m.from).member("to", m.to).member("to_disk", m.to_disk);
    w.member("reason", m.reason).member("at_once", m.at_once).end_object();
  }
  w.end_array().member("wanted", outcome.wanted).end_object();
  return w.take() + "\n";
}

std::string explanation_body(const Explanation& e) {
  json::Writer w;
  w.begin_object();
  write_partition(w, e.partition);
  w.member("owner", e.place.owner).member("owner_disk", e.place.owner_disk).member("used", e.used);
  w.member("target", e.place.target).member("target_disk", e.place.target_disk);
  if (!e.place.target.empty()) w.member("id", e.place.move_id);
  w.member("verdict", e.verdict).member("text", e.text).member("would_go_to", e.would_go_to);
  w.key("members").begin_array();
  for (const ReceiverShare& m : e.members) {
    w.begin_object().member("node", m.node).member("standing", m.standing);
    w.member("owned", m.owned).member("share", m.share).end_object();
  }
  w.end_array().end_object();
  return w.take() + "\n";
}

}  // namespace narad::api

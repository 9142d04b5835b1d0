#include "cmd/narad/cluster_view.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cmd/narad/format.h"
#include "cmd/narad/view_parts.h"
#include "pkg/base/text.h"

namespace narad::cli {
namespace {

Error no_answer(std::string_view what) {
  return Error(Errc::data_loss, cat("the server's answer is no ", what));
}

// ---- reading

std::vector<DrainReasonView> read_reasons(const Fields& f) {
  std::vector<DrainReasonView> out;
  const auto reasons = f.objects("reasons");
  for (const Fields& r : reasons.value_or(std::vector<Fields>())) {
    out.push_back({r.text("rule"), r.text("detail"), r.flag("hopeless")});
  }
  return out;
}

DrainView read_drain(const Fields& f) {
  DrainView d;
  d.leaving = f.flag("leaving");
  d.partitions = f.count("partitions");
  d.unused = f.count("unused");
  d.inbound = f.count("inbound");
  d.reasons = read_reasons(f);
  return d;
}

PlannedMoveView read_planned(const Fields& f) {
  PlannedMoveView m;
  m.topic = f.text("topic");
  m.partition = f.count("partition");
  m.from = f.text("from");
  m.to = f.text("to");
  m.to_disk = f.text("to_disk");
  m.reason = f.text("reason");
  m.at_once = f.flag("at_once");
  return m;
}

// ---- words

std::string counted(std::uint64_t n, std::string_view one, std::string_view many) {
  return cat(n, ' ', n == 1 ? one : many);
}
std::string partitions_text(std::uint64_t n) { return counted(n, "partition", "partitions"); }

// "4 partitions left (1 never used), 2 moves on their way there".
std::string what_is_left(const DrainView& d) {
  std::string out = cat(partitions_text(d.partitions), " left");
  if (d.unused > 0) out += cat(" (", d.unused, " never used)");
  if (d.inbound > 0) {
    out += cat(", ", counted(d.inbound, "move on its way", "moves on their way"), " there");
  }
  return out;
}

std::string reason_line(const DrainReasonView& r) {
  return cat("    ", r.rule, ": ", r.detail, "\n");
}

std::string drain_paragraph(const MemberView& m) {
  if (!m.drain) return cat("\n", m.id, " is being decommissioned\n");
  if (m.drain->leaving) return cat("\n", m.id, " is empty and leaves the cluster\n");
  std::string out = cat("\n", m.id, " is being decommissioned: ", what_is_left(*m.drain), "\n");
  for (const DrainReasonView& r : m.drain->reasons) out += reason_line(r);
  return out;
}

std::string reasons_of(const DrainView& d, bool hopeless) {
  std::string out;
  for (const DrainReasonView& r : d.reasons) {
    if (r.hopeless == hopeless) out += reason_line(r);
  }
  return out;
}

std::string place(const std::string& node, const std::string& disk) {
  return disk.empty() ? node : cat(node, " (disk ", disk, ')');
}

}  // namespace

// ---- members

Result<std::vector<MemberView>> read_members(std::string body) {
  NARAD_TRY(const json::Document document,
            read_object(std::move(body), no_answer("list of members")));
  const auto list = Fields(document.root()).objects("members");
  if (!list) return no_answer("list of members");
  std::vector<MemberView> out;
  for (const Fields& f : *list) {
    MemberView m;
    m.id = f.text("id");
    m.addr = f.text("addr");
    m.status = f.text("status");
    m.role = f.text("role");
    m.draining = f.flag("draining");
    m.owned = f.count("owned_partitions");
    m.outbound = f.count("outbound_moves");
    if (const auto drain = f.object("drain")) m.drain = read_drain(*drain);
    out.push_back(std::move(m));
  }
  return out;
}

std::string members_table(const std::vector<MemberView>& members) {
  const std::vector<Column> columns{{"NODE"},           {"ADDRESS"},  {"STATUS"},
                                    {"ROLE"},           {"DRAINING"}, {"PARTITIONS", true},
                                    {"MOVES OUT", true}};
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  std::vector<Row> rows;
  for (const MemberView& m : members) {
    rows.push_back({m.id, or_dash(m.addr), or_dash(m.status), or_dash(m.role),
                    m.draining ? "yes" : "no", cat(m.owned), cat(m.outbound)});
  }
  std::string out = together(align(columns, rows));
  for (const MemberView& m : members) {
    if (m.draining) out += drain_paragraph(m);
  }
  for (const MemberView& m : members) {
    if (m.status != "dead" || m.owned == 0) continue;
    out += cat("\n", m.id, " is dead and owns ", partitions_text(m.owned),
               ": nobody else has what was written there. Start it again with its disks\n");
  }
  return out;
}

std::string drain_line(const MemberView& m) {
  if (!m.drain) return cat(m.id, " is being decommissioned");
  if (m.drain->leaving) return cat(m.id, " is empty and leaves the cluster");
  std::string out = cat(m.id, ": ", what_is_left(*m.drain));
  for (const DrainReasonView& r : m.drain->reasons) out += cat("; ", r.rule, ": ", r.detail);
  return out;
}

// ---- verdicts

Result<VerdictView> read_verdict(std::string body) {
  NARAD_TRY(const json::Document document, read_object(std::move(body), no_answer("verdict")));
  const Fields f(document.root());
  VerdictView v;
  v.node = f.text("node");
  v.possible = f.flag("possible");
  v.draining = f.flag("draining");
  v.drain = read_drain(f);
  if (v.node.empty()) return no_answer("verdict");
  return v;
}

std::string verdict_page(const VerdictView& v) {
  if (v.drain.leaving) return cat(v.node, " is empty and leaves the cluster\n");
  const std::string never = reasons_of(v.drain, true);
  const std::string passing = reasons_of(v.drain, false);
  std::string out;
  if (v.draining) {
    out = cat(v.node, " is being decommissioned already: ", what_is_left(v.drain), "\n");
  } else {
    out = cat(v.node, v.possible ? " can" : " cannot", " be decommissioned\n");
  }
  if (!never.empty()) out += cat("  what does not pass by itself:\n", never);
  if (!passing.empty()) {
    out += cat("  what it ", v.draining ? "waits" : "would wait", " for:\n", passing);
  }
  return out;
}

bool StopView::unknown() const {
  return !reasons.empty() && std::all_of(reasons.begin(), reasons.end(),
                                         [](const auto& r) { return r.rule == "unreachable"; });
}

Result<StopView> read_stop(std::string body) {
  NARAD_TRY(const json::Document document, read_object(std::move(body), no_answer("verdict")));
  const Fields f(document.root());
  StopView v;
  v.node = f.text("node");
  v.safe = f.flag("safe");
  v.reasons = read_reasons(f);
  if (v.node.empty()) return no_answer("verdict");
  return v;
}

std::string stop_page(const StopView& v) {
  if (v.safe) return cat(v.node, " may be stopped now\n");
  std::string out =
      cat(v.node, v.unknown() ? " may not be safe to stop now\n" : " should not be stopped now\n");
  for (const DrainReasonView& r : v.reasons) out += reason_line(r);
  return out;
}

// ---- quarantine

Result<QuarantineView> read_quarantine(std::string body) {
  NARAD_TRY(const json::Document document, read_object(std::move(body), no_answer("quarantine")));
  const Fields f(document.root());
  const auto copies = f.objects("copies");
  if (!copies) return no_answer("quarantine");
  QuarantineView q;
  q.left_out = f.count("left_out");
  for (const Fields& c : *copies) {
    q.copies.push_back({c.text("node"), c.text("kind"), c.text("topic"), c.text("path"),
                        c.text("why"), c.maybe("partition"), c.count("bytes"), c.time("since")});
  }
  const auto unanswered = f.objects("unanswered");
  for (const Fields& u : unanswered.value_or(std::vector<Fields>())) {
    q.unanswered.emplace_back(u.text("node"), u.text("error"));
  }
  return q;
}

std::string quarantine_page(const QuarantineView& q) {
  std::vector<Row> rows;
  std::uint64_t bytes = 0;
  for (const SetAsideView& c : q.copies) {
    bytes += c.bytes;
    std::string name = c.partition ? cat(c.topic, '/', *c.partition) : c.topic;
    if (c.kind != "partition") name += cat(" (", c.kind, ')');
    rows.push_back({c.node, std::move(name), short_bytes(c.bytes), time_text(c.since), c.path,
                    c.why.empty() ? "-" : c.why});
  }
  std::string out;
  if (!rows.empty()) {
    out = together(
        align({{"NODE"}, {"COPY OF"}, {"BYTES", true}, {"SINCE"}, {"PATH"}, {"WHY"}}, rows));
    out += cat("\n", counted(q.copies.size(), "copy", "copies"), ", ", short_bytes(bytes),
               ": Narad never removes one. narad fsck PATH says what is in it\n");
  } else if (q.unanswered.empty()) {
    out = "nothing is in quarantine\n";
  }
  if (q.left_out > 0) out += cat("and ", q.left_out, " more that are not named here\n");
  for (const auto& [node, why] : q.unanswered) {
    out += cat(node, ": what it has is not known: ", why, "\n");
  }
  return out;
}

// ---- plans

Result<RebalanceView> read_rebalance(std::string body) {
  NARAD_TRY(const json::Document document, read_object(std::move(body), no_answer("plan")));
  const Fields f(document.root());
  const auto moves = f.objects("moves");
  if (!moves) return no_answer("plan");
  RebalanceView plan;
  plan.dry_run = f.flag("dry_run");
  plan.wanted = f.count("wanted");
  for (const Fields& m : *moves) plan.moves.push_back(read_planned(m));
  const auto cleared = f.objects("cleared");
  for (const Fields& m : cleared.value_or(std::vector<Fields>())) {
    plan.cleared.push_back(read_planned(m));
  }
  return plan;
}

std::string rebalance_page(const RebalanceView& plan) {
  std::string out;
  for (const PlannedMoveView& c : plan.cleared) {
    out += cat("the move of ", c.topic, '/', c.partition, " to ", c.to,
               plan.dry_run ? " would be" : " was", " called off: ", c.reason, "\n");
  }
  if (plan.moves.empty()) {
    if (plan.wanted == 0) return cat(out, "nothing is to move\n");
    return cat(out, "nothing more can begin now; ", counted(plan.wanted, "move", "moves"),
               " wanted\n");
  }
  std::vector<Row> rows;
  for (const PlannedMoveView& m : plan.moves) {
    rows.push_back({cat(m.topic, '/', m.partition), m.from, m.to, m.to_disk,
                    m.at_once ? cat(m.reason, ", at once: it was never used") : m.reason});
  }
  out += cat(counted(plan.moves.size(), "partition", "partitions"),
             plan.dry_run ? " would be moved now\n" : " to move\n");
  out += together(align({{"PARTITION"}, {"FROM"}, {"TO"}, {"DISK"}, {"WHY"}}, rows));
  if (plan.wanted > plan.moves.size()) {
    out += cat(plan.wanted - plan.moves.size(), " more once fewer are under way\n");
  }
  return out;
}

// ---- explanations

Result<ExplanationView> read_explanation(std::string body) {
  NARAD_TRY(const json::Document document, read_object(std::move(body), no_answer("explanation")));
  const Fields f(document.root());
  ExplanationView e;
  e.topic = f.text("topic");
  e.partition = f.count("partition");
  e.owner = f.text("owner");
  e.owner_disk = f.text("owner_disk");
  e.target = f.text("target");
  e.target_disk = f.text("target_disk");
  e.verdict = f.text("verdict");
  e.text = f.text("text");
  e.used = f.flag("used");
  e.move_id = f.count("id");
  if (e.topic.empty()) return no_answer("explanation");
  const auto members = f.objects("members");
  for (const Fields& m : members.value_or(std::vector<Fields>())) {
    e.members.push_back({m.text("node"), m.text("standing"), m.count("owned"), m.count("share")});
  }
  return e;
}

std::string explanation_page(const ExplanationView& e) {
  const std::string name = cat(e.topic, '/', e.partition);
  std::string out = e.owner.empty() ? cat(name, " has no owner yet\n")
                                    : cat(name, " is on ", place(e.owner, e.owner_disk),
                                          e.used ? "" : " and was never used", "\n");
  if (!e.target.empty()) {
    out += cat("on its way to ", place(e.target, e.target_disk), ": see narad cluster moves show ",
               e.move_id, "\n");
  }
  out += cat(e.verdict, ": ", e.text, "\n\n");
  std::vector<Row> rows;
  for (const ShareView& m : e.members) {
    rows.push_back({m.node, cat(m.owned), cat(m.share),
                    m.standing.empty() ? std::string("yes") : cat("no: it is ", m.standing)});
  }
  return out +
         together(align({{"NODE"}, {"PARTITIONS", true}, {"SHARE", true}, {"TAKES MORE"}}, rows));
}

}  // namespace narad::cli

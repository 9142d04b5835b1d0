#pragma once
// Members, departures and plans as a person reads them: read from an answer, and as tables and
// pages. Pure. What a server says is escaped where it is read, since one line of it must stay one.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/result.h"

namespace narad::cli {

// Why a member does not leave.
struct DrainReasonView {
  std::string rule, detail;
  bool hopeless = false;
  friend bool operator==(const DrainReasonView&, const DrainReasonView&) = default;
};
struct DrainView {
  bool leaving = false;
  std::uint64_t partitions = 0, unused = 0, inbound = 0;
  std::vector<DrainReasonView> reasons;
  friend bool operator==(const DrainView&, const DrainView&) = default;
};

struct MemberView {
  std::string id, addr, status, role;
  bool draining = false;
  std::uint64_t owned = 0, outbound = 0;
  std::optional<DrainView> drain;  // what it waits for, if the server says so
};
// data_loss if that is no such answer; so are the others.
Result<std::vector<MemberView>> read_members(std::string body);
// One line per member; below, what each that drains waits for, and what the dead ones keep away.
std::string members_table(const std::vector<MemberView>& members);

// What a drain that was or is to be begun comes to.
struct VerdictView {
  std::string node;
  bool possible = false, draining = false;
  DrainView drain;
};
Result<VerdictView> read_verdict(std::string body);
std::string verdict_page(const VerdictView& verdict);

// How far a drain is, in one line; the same line as long as nothing has changed.
std::string drain_line(const MemberView& member);

// Whether a node may be stopped for a while.
struct StopView {
  std::string node;
  bool safe = false;
  std::vector<DrainReasonView> reasons;  // never hopeless
  // Nothing speaks against it but that something is not known.
  bool unknown() const;
};
Result<StopView> read_stop(std::string body);
std::string stop_page(const StopView& verdict);

// What nodes keep aside.
struct SetAsideView {
  std::string node, kind, topic, path, why;
  std::optional<std::uint64_t> partition;
  std::uint64_t bytes = 0;
  std::int64_t since = 0;  // Unix seconds; 0: not said
};
struct QuarantineView {
  std::vector<SetAsideView> copies;
  std::uint64_t left_out = 0;
  std::vector<std::pair<std::string, std::string>> unanswered;  // node, why
};
Result<QuarantineView> read_quarantine(std::string body);
// "nothing is in quarantine" only of nodes that have answered.
std::string quarantine_page(const QuarantineView& quarantine);

struct PlannedMoveView {
  std::string topic;
  std::uint64_t partition = 0;
  std::string from, to, to_disk, reason;
  bool at_once = false;
};
struct RebalanceView {
  bool dry_run = false;
  std::vector<PlannedMoveView> cleared, moves;  // of those cleared: to, reason
  std::uint64_t wanted = 0;
};
Result<RebalanceView> read_rebalance(std::string body);
std::string rebalance_page(const RebalanceView& plan);

struct ShareView {
  std::string node, standing;
  std::uint64_t owned = 0, share = 0;
};
struct ExplanationView {
  std::string topic;
  std::uint64_t partition = 0;
  std::string owner, owner_disk, target, target_disk, verdict, text;
  bool used = false;
  std::uint64_t move_id = 0;
  std::vector<ShareView> members;
};
Result<ExplanationView> read_explanation(std::string body);
std::string explanation_page(const ExplanationView& explanation);

}  // namespace narad::cli

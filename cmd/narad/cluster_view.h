#pragma once
// Members, departures and plans as a person reads them: read from an answer, and as tables and
// pages. Pure. What a server says is escaped where it is read, since one line of it must stay one.
#include <cstdint>
#include <optional>
#include <string>
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

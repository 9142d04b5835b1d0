#pragma once
// Planted bugs: faults put into the doors, into the hand-over, or into options of the dispatcher,
// each one what a release that forgot a step would do. The simulation must find every one of them
// (world_test.cpp); none exists in the product. Rarer ones of the hand-over (a home that is fed
// while a rerouted batch is out, a lost skip set, mixed origins) are planted and found in
// internal/dispatch.
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "internal/dispatch/plan.h"
#include "internal/dispatch/target.h"
#include "internal/node/move_hooks.h"
#include "pkg/env/fs.h"

namespace narad::simtest {

enum class Defect : std::uint8_t {
  none,
  // A disk door that leaves out a step, as code that forgot it would:
  accept_before_sync,      // 202 without the sync of the ingress WAL
  commit_before_sync,      // a partition's segments are never synced
  metastore_before_sync,   // SQLite's syncs do nothing
  no_directory_sync,       // names are never made durable
  ack_journal_not_synced,  // consumer.acks is written, not synced
  replaced_before_sync,    // files are renamed into place before their content is durable
  ack_journal_ignored,     // acks of the last moments are not read back at open
  failed_sync_ignored,     // a failed sync is taken for success
  // The hand-over:
  checkpoint_too_high,        // the checkpoint passes records that are not settled
  double_append,              // the owner does not recognise a repeated hand-over
  failure_taken_for_success,  // a failed commit counts as settled
  batch_cut_short,            // the last record of a batch is left out and counts as settled
  // Moves:
  flip_without_epoch,      // a flip applies whatever became of its freeze
  flip_without_move_id,    // a flip applies to whatever move is under way by then
  promote_without_mark,    // an owner is replaced although it came back meanwhile
  thaw_without_void,       // a freeze whose time is over ends without an entry of the log
  no_move_lease,           // an owner cut off from the leader commits on
  no_check_after_sync,     // the gate is not asked again before the HWM advances
  displaced_copy_deleted,  // a copy that would be set aside is removed
  staged_not_synced,       // staging.json calls synced what was not
  believes_less,           // a source that came back with less is copied as it is
};

struct DefectInfo {
  Defect defect;
  std::string_view name;
  bool of_moves = false;  // only partitions that move show it
  bool of_walk = false;   // only what is done to them in a walk
};
const std::vector<DefectInfo>& all_defects();

// The disk as the defective release would use it. `inner` outlives it.
std::unique_ptr<FileSystem> plant(Defect defect, FileSystem& inner);
dispatch::PlanDefects plan_defects(Defect defect);
// Moves of the defective release (defects_moves.cpp).
node::MoveHooks move_hooks(Defect defect);
// The hand-over of the defective release; null if the defect lies elsewhere. `inner` outlives it.
std::unique_ptr<dispatch::CommitTarget> plant(Defect defect, dispatch::CommitTarget& inner);

}  // namespace narad::simtest

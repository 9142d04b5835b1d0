#pragma once
// Why a node is not ready, or not a member: one sentence each, for /readyz, the log and `narad
// cluster members`; and words that reasons share. Pure.
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/base/text.h"

namespace narad::cluster {

struct Standing {
  enum class Phase : std::uint8_t {
    starting,  // nobody was asked yet
    waiting,   // `detail` says for whom
    founding,  // writing the beginning of the cluster
    joining,   // asked to be let in; `detail` is the last answer
    member,    // admitted
    removed,   // `detail` says when and what to do
  };
  Phase phase = Phase::starting;
  std::string detail;
  std::uint64_t cluster_id = 0;
  std::string leader;  // node id; empty: none known
  bool self_leads = false;
  bool caught_up = false;
  bool founded_entry = false;  // the metastore of this node knows its cluster id
  bool dead = false;           // this node's own member row says dead
  Nanos without_leader{0};     // for how long none has been known
  std::string heartbeat;       // why the last heartbeat was not answered; empty: it was
};

// Empty: as far as membership goes the node is ready.
std::vector<std::string> why_not_ready(const Standing& s);

// What a removed node says when it starts again.
std::string removed_text(const std::string& node, RaftIndex removed_at, UnixMillis removed_ms,
                         const std::string& data_dir);

// "1 move", "3 moves".
std::string counted(std::uint64_t n, std::string_view one, std::string_view many);

}  // namespace narad::cluster

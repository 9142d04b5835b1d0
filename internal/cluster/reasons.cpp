#include "internal/cluster/reasons.h"

namespace narad::cluster {

std::vector<std::string> why_not_ready(const Standing& s) {
  using Phase = Standing::Phase;
  std::vector<std::string> out;
  const std::string which = s.cluster_id == 0 ? "" : cat(" ", to_hex16(s.cluster_id));
  switch (s.phase) {
    case Phase::starting:
      return {"membership: asking the configured peers"};
    case Phase::waiting:
      return {cat("membership: ", s.detail)};
    case Phase::founding:
      return {"membership: founding a cluster"};
    case Phase::joining:
      return {cat("membership: joining cluster", which,
                  s.detail.empty() ? "" : cat("; last answer: ", s.detail))};
    case Phase::removed:
      return {cat("membership: ", s.detail)};
    case Phase::member:
      break;
  }
  if (s.leader.empty()) {
    out.push_back(
        cat("cluster", which, " has had no leader for ",
            format_duration(std::chrono::duration_cast<std::chrono::seconds>(s.without_leader)),
            ": a majority of its voters must be up and reach each other"));
  } else if (!s.caught_up) {
    out.push_back(cat("catching up with the metadata of leader ", s.leader));
  } else if (!s.founded_entry) {
    out.push_back("the first entry of the cluster is not applied yet");
  }
  if (!s.heartbeat.empty() && !s.leader.empty()) out.push_back(cat("heartbeat: ", s.heartbeat));
  if (s.dead && s.caught_up) {
    out.push_back("the cluster counts this node as dead until its next heartbeat is answered");
  }
  return out;
}

std::string removed_text(const std::string& node, RaftIndex removed_at, UnixMillis removed_ms,
                         const std::string& data_dir) {
  return cat("node ", node, " was removed from its cluster",
             removed_ms.value() > 0 ? cat(" at ", format_rfc3339(removed_ms)) : "", " (entry ",
             removed_at, "). Its id does not come back. To use this machine again, move ",
             data_dir.empty() ? std::string("its data directory") : data_dir,
             " away and start with an empty one under a new node id");
}

std::string counted(std::uint64_t n, std::string_view one, std::string_view many) {
  return cat(n, " ", n == 1 ? one : many);
}

}  // namespace narad::cluster

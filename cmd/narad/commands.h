#pragma once
// Entry points of the subcommands, one source each (cmd_topic.cpp has those of `narad topic`, and
// so on). Each answers the exit status of the process.
#include <cstdint>
#include <string>

namespace narad::cli {

inline constexpr std::int64_t kPortMax = 65'535;

// Concurrent requests of `narad bench`.
inline constexpr std::int64_t kBenchWorkersMax = 4096;

class Arguments;
class Terminal;

int topic_add(const Arguments&, Terminal&);
int topic_ls(const Arguments&, Terminal&);
int topic_info(const Arguments&, Terminal&);
int topic_edit(const Arguments&, Terminal&);
int topic_rm(const Arguments&, Terminal&);
int topic_attach(const Arguments&, Terminal&);
int topic_detach(const Arguments&, Terminal&);
int topic_children(const Arguments&, Terminal&);
int pub(const Arguments&, Terminal&);
int sub(const Arguments&, Terminal&);
int replay(const Arguments&, Terminal&);
int bench(const Arguments&, Terminal&);
int user_add(const Arguments&, Terminal&);
int user_grant(const Arguments&, Terminal&);
int user_ls(const Arguments&, Terminal&);
int user_rm(const Arguments&, Terminal&);
int ctx_add(const Arguments&, Terminal&);
int ctx_select(const Arguments&, Terminal&);
int ctx_ls(const Arguments&, Terminal&);
int ctx_rm(const Arguments&, Terminal&);
int cluster_members(const Arguments&, Terminal&);
int cluster_moves(const Arguments&, Terminal&);
int cluster_moves_show(const Arguments&, Terminal&);
int cluster_moves_start(const Arguments&, Terminal&);
int cluster_moves_abort(const Arguments&, Terminal&);
int cluster_moves_pause(const Arguments&, Terminal&);
int cluster_moves_resume(const Arguments&, Terminal&);
int cluster_decommission(const Arguments&, Terminal&);
int cluster_safe_to_stop(const Arguments&, Terminal&);
int cluster_quarantine(const Arguments&, Terminal&);
int cluster_rebalance(const Arguments&, Terminal&);
int cluster_explain(const Arguments&, Terminal&);
int cluster_throttle(const Arguments&, Terminal&);
int server_start(const Arguments&, Terminal&);
int server_report(const Arguments&, Terminal&);
int serve(const Arguments&, Terminal&);
int fsck(const Arguments&, Terminal&);
int fsck_wal(const Arguments&, Terminal&);
int version(const Arguments&, Terminal&);
int completion(const Arguments&, Terminal&);
int help(const Arguments&, Terminal&);
int man(const Arguments&, Terminal&);

// "0.1.0".
std::string version_text();

}  // namespace narad::cli

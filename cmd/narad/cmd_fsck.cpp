#include <signal.h>
#include <unistd.h>

#include "cmd/narad/commands.h"
#include "cmd/narad/session.h"
#include "internal/fsck/check.h"
#include "pkg/base/text.h"
#include "pkg/env/real/real_fs.h"

namespace narad::cli {
namespace {

constexpr int kInterrupted = 32;

// Nothing is written, so an interrupted check may end on the spot.
void end_when_interrupted() {
  struct sigaction action{};
  action.sa_handler = [](int) { ::_exit(kInterrupted); };
  for (int number : {SIGINT, SIGTERM}) ::sigaction(number, &action, nullptr);
}

template <class Check>
int run_checks(const Arguments& args, Terminal& terminal, const Check& check) {
  end_when_interrupted();
  RealFs fs;
  fsck::Report report;
  fsck::CheckOptions options;
  options.payloads = !args.flag("quick");
  options.allow_live = args.flag("allow-live");
  for (const std::string& path : args.operands()) check(fs, path, report, options);
  bool json = args.text("output") == "json";
  print_out(terminal, json ? cat(report.json(), "\n") : report.text());
  return report.result();
}

}  // namespace

int fsck(const Arguments& args, Terminal& terminal) {
  return run_checks(args, terminal, fsck::check_path);
}

int fsck_wal(const Arguments& args, Terminal& terminal) {
  return run_checks(args, terminal, fsck::check_wal);
}

}  // namespace narad::cli

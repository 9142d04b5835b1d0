// Scripts of commands with the transcript they must give: testdata/raft/*.txt. A block is commands,
// a line
// "----", the expected output, an empty line. NARAD_WRITE_GOLDEN=1 writes the transcripts anew;
// review them as a diff. Commands:
//   group 1 2 3 [/ 4]      voters and learners          start 4 n4      a replica with an empty
//   disk promote-learners       before group                 chunk BYTES     before group tick N
//   [TIMES]         deliver [COUNT]              elect N cut A B                messages A to B are
//   lost     isolate N       heal propose N TEXT         read N CONTEXT               transfer N
//   TARGET change N add|promote|demote|remove TARGET [NODE] snapshot N [KEEP]      restart N hold
//   N, release N (its disk) state                  log N
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "pkg/raft/test_group.h"

namespace narad::raft {
namespace {

class Script {
 public:
  std::string run(const std::string& line) {
    std::istringstream in(line);
    std::string command;
    in >> command;
    std::vector<std::string> words;
    for (std::string w; in >> w;) words.push_back(w);
    out_.clear();
    if (!run_network(command, words) && !run_core(command, words)) out_ += "unknown command\n";
    note_answers();
    return out_;
  }

 private:
  using Words = std::vector<std::string>;
  static std::uint64_t number(const Words& w, std::size_t at, std::uint64_t otherwise = 0) {
    return at < w.size() ? parse_number<std::uint64_t>(w[at]).value_or(otherwise) : otherwise;
  }

  Options options(std::uint64_t n) const {
    Options o = options_for(n);
    o.promote_learners = promote_;
    o.chunk_bytes = chunk_;
    return o;
  }

  bool run_network(const std::string& c, const Words& w) {
    if (c == "promote-learners") {
      promote_ = true;
    } else if (c == "chunk") {
      chunk_ = number(w, 0);
    } else if (c == "group") {
      start_group(w);
    } else if (c == "start") {
      Options o = options(number(w, 0));
      o.node = w.at(1);
      group_.start(number(w, 0), o, Configuration());
    } else if (c == "deliver") {
      deliver(static_cast<int>(number(w, 0, 10'000)));
    } else if (c == "drop") {
      group_.network.clear();
    } else if (c == "cut") {
      cuts_.insert({number(w, 0), number(w, 1)});
    } else if (c == "isolate") {
      for (auto& [n, core] : group_.cores) {
        cuts_.insert({n, number(w, 0)});
        cuts_.insert({number(w, 0), n});
      }
    } else if (c == "heal") {
      cuts_.clear();
    } else if (c == "hold") {
      group_.hold(number(w, 0));
    } else if (c == "release") {
      group_.release(number(w, 0));
    } else if (c == "forget") {
      StartState& disk = group_.stored[number(w, 0)].state;
      disk = first_start(disk.snapshot.configuration);
    } else if (c == "restart") {
      group_.restart(number(w, 0));
    } else {
      return false;
    }
    return true;
  }

  void start_group(const Words& w) {
    std::vector<std::uint64_t> voters, learners;
    bool learner = false;
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (w[i] == "/") {
        learner = true;
      } else {
        (learner ? learners : voters).push_back(number(w, i));
      }
    }
    Configuration c = configuration_of(voters, learners);
    for (const Member& m : c.members()) {
      group_.start(m.replica.value(), options(m.replica.value()), c);
    }
  }

  void deliver(int count) {
    while (!group_.network.empty() && count-- > 0) {
      Message m = group_.network.front();
      group_.network.pop_front();
      bool lost =
          cuts_.count({m.from.value(), m.to.value()}) != 0 || group_.cores.count(m.to.value()) == 0;
      out_ += cat(describe(m), lost ? " (lost)" : "", "\n");
      if (lost) continue;
      Result<> done = group_.step(m);
      if (!done) out_ += cat("  refused: ", done.error().text(), "\n");
    }
  }

  void show(std::uint64_t n, const Result<ProposalId>& id) {
    out_ += id ? cat("at ", id.value().term, "/", id.value().index, "\n")
               : cat(to_string(id.error().code()), ": ", id.error().text(), "\n");
    group_.work(n);
  }
  void show(std::uint64_t n, const Result<>& done) {
    if (!done) out_ += cat(to_string(done.error().code()), ": ", done.error().text(), "\n");
    group_.work(n);
  }

  bool run_core(const std::string& c, const Words& w) {
    std::uint64_t n = number(w, 0);
    if (c == "tick") {
      group_.tick(n, static_cast<int>(number(w, 1, 1)));
    } else if (c == "elect") {
      for (int i = 0; i < 40 && group_[n].role() == Role::follower; ++i) group_.tick(n);
    } else if (c == "propose") {
      show(n, group_[n].propose(payload_of(w.at(1))));
    } else if (c == "read") {
      show(n, group_[n].read_index(number(w, 1)));
    } else if (c == "transfer") {
      show(n, group_[n].transfer_leadership(R(number(w, 1))));
    } else if (c == "change") {
      change(n, w);
    } else if (c == "snapshot") {
      group_.snapshot(n, number(w, 1));
    } else if (c == "state") {
      for (auto& [id, core] : group_.cores) state(id, *core);
    } else if (c == "log") {
      const Log& log = group_[n].log();
      out_ += cat("base ", log.base_term(), "/", log.base(), "\n");
      for (Index i = log.first(); i <= log.last(); i = i.next()) {
        out_ += cat(describe(log.at(i)), "\n");
      }
    } else {
      return false;
    }
    return true;
  }

  void change(std::uint64_t n, const Words& w) {
    using Kind = ConfigurationChange::Kind;
    const std::map<std::string, Kind> kinds{{"add", Kind::add_learner},
                                            {"promote", Kind::promote},
                                            {"demote", Kind::demote},
                                            {"remove", Kind::remove}};
    show(n, group_[n].propose_change(
                {kinds.at(w.at(1)), R(number(w, 2)), w.size() > 3 ? w[3] : std::string()}));
  }

  void state(std::uint64_t id, const Core& c) {
    if (c.fault()) {
      out_ += cat(id, " stopped: ", c.fault()->text(), "\n");
      return;
    }
    out_ += cat(id, " ", to_string(c.role()), " term ", c.term(), " leader ", c.leader(), " log ",
                c.log().base(), "..", c.log().last(), " commit ", c.commit_index(), " applied ",
                c.applied_index(), " as ", to_string(c.soft_state().standing), " of ",
                describe(c.membership().current()), "\n");
  }

  void note_answers() {
    for (auto& [n, reads] : group_.reads) {
      for (const ReadResult& r : reads) {
        out_ += cat("replica ", n, " read ", r.context, ": ",
                    r.index ? to_string(*r.index) : std::string("lost"), "\n");
      }
    }
    group_.reads.clear();
    for (auto& [n, ids] : group_.unknown) {
      for (const ProposalId& id : ids) {
        out_ += cat("replica ", n, " unknown: ", id.term, "/", id.index, "\n");
      }
    }
    group_.unknown.clear();
  }

  Group group_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> cuts_;
  bool promote_ = false;
  std::uint64_t chunk_ = 1 << 20;
  std::string out_;
};

// The file with every output replaced by what the script gives.
std::string replay(const std::string& file) {
  Script script;
  std::string made;
  std::istringstream in(file);
  std::string line, commands, output;
  bool in_output = false;
  auto close = [&] {
    if (!commands.empty() || !output.empty()) made += cat(commands, "----\n", output, "\n");
    commands.clear();
    output.clear();
    in_output = false;
  };
  while (std::getline(in, line)) {
    if (line.empty()) {
      close();
    } else if (line == "----") {
      in_output = true;
    } else if (line.starts_with("#")) {
      made += line + "\n";
    } else if (!in_output) {
      commands += line + "\n";
      output += script.run(line);
    }
  }
  close();
  return made;
}

TEST(RaftScript, EveryTranscript_IsAsExpected) {
  std::vector<std::filesystem::path> files;
  for (const auto& f : std::filesystem::directory_iterator("testdata/raft")) {
    if (f.path().extension() == ".txt") files.push_back(f.path());
  }
  std::sort(files.begin(), files.end());
  EXPECT_GE(files.size(), 8u);
  for (const auto& path : files) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    std::string made = replay(text.str());
    if (std::getenv("NARAD_WRITE_GOLDEN") != nullptr) {
      std::ofstream(path) << made;
    } else {
      EXPECT_EQ(made, text.str()) << path;
    }
  }
}

}  // namespace
}  // namespace narad::raft

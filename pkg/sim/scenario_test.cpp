// The whole chain on a small broker of one node: plans drawn from seeds, faults of every kind, a
// supervisor, a calm phase, checkers. The correct node passes every seed; each planted bug is found
// and shrunk to a few faults. So what a green simulation of the real broker says is worth
// something.
#include <gtest/gtest.h>

#include <boost/system/system_error.hpp>
#include <chrono>
#include <set>

#include "pkg/async/event.h"
#include "pkg/async/stream_io.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/sim/machine.h"
#include "pkg/sim/runner.h"

namespace narad::sim {
namespace {

using namespace std::chrono_literals;

enum class Bug {
  none,
  ack_before_sync,
  no_checksum,
  no_directory_sync,
  trusts_page_cache,  // recovery goes on with the file it finds, unsynced pages and all
  goes_on_after_failed_sync,
  acks_unanswered  // the client takes a time-out for a yes
};

// Frames {u32 length, u64 checksum, bytes} in one file. Blocking calls only.
class Ledger {
 public:
  Ledger(FileSystem& fs, Bug bug) : fs_(fs), bug_(bug) {}

  Result<void> open() {
    Bytes intact;
    auto found = read_file(fs_, "/ledger", 1 << 24);
    if (!found && found.error().code() != Errc::not_found) return found.error();
    if (found) {
      intact = scan(found.value());
      if (bug_ == Bug::trusts_page_cache) {
        NARAD_TRY(file_, fs_.open("/ledger", OpenMode::read_write));
        NARAD_TRY(file_->truncate(intact.size()));
        NARAD_TRY(file_->sync());
        end_ = intact.size();
        return ok();
      }
    }
    // What the page cache shows may not be on the disk: a fresh file, whole, under the old name.
    if (auto r = fs_.remove("/ledger.new"); !r && r.error().code() != Errc::not_found) {
      return r.error();
    }
    NARAD_TRY(file_, fs_.open("/ledger.new", OpenMode::create_new));
    NARAD_TRY(write_all(*file_, intact, 0));
    NARAD_TRY(file_->sync());
    NARAD_TRY(fs_.rename("/ledger.new", "/ledger"));
    if (bug_ != Bug::no_directory_sync) {
      NARAD_TRY(fs_.sync_dir("/"));
    }
    end_ = intact.size();
    return ok();
  }

  Result<void> append(const std::string& value) {
    Bytes frame;
    ByteWriter out(frame);
    out.u32(static_cast<std::uint32_t>(value.size()));
    out.u64(xxh3(as_bytes(value), 1));
    out.bytes(as_bytes(value));
    NARAD_TRY(write_all(*file_, frame, end_));
    if (bug_ != Bug::ack_before_sync) {
      auto synced = file_->datasync();
      if (!synced && bug_ != Bug::goes_on_after_failed_sync) return synced.error();
    }
    end_ += frame.size();
    records_.push_back(value);
    return ok();
  }

  const std::vector<std::string>& records() const { return records_; }

 private:
  // Fills records_ and answers the intact prefix.
  Bytes scan(const Bytes& all) {
    ByteReader in(all);
    std::size_t intact = 0;
    while (in.remaining() >= 12) {
      const std::uint32_t length = in.u32();
      const std::uint64_t sum = in.u64();
      const ByteView value = in.bytes(length);
      if (!in.ok() || (bug_ != Bug::no_checksum && xxh3(value, 1) != sum)) break;
      records_.push_back(to_text(value));
      intact = in.position();
    }
    return Bytes(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(intact));
  }

  FileSystem& fs_;
  const Bug bug_;
  std::unique_ptr<File> file_;
  std::uint64_t end_ = 0;
  std::vector<std::string> records_;
};

// "<value>\n" in, "ok\n" out once it is durable. A disk that fails ends the process.
class Node {
 public:
  Node(Env& env, Bug bug)
      : env_(env), ledger_(std::make_shared<Ledger>(env.fs, bug)), writing_(env), group_(env) {
    group_.spawn("run", run());
  }
  bool ready() const { return ready_; }
  const std::vector<std::string>& records() const { return ledger_->records(); }

 private:
  Task<void> run() {
    auto open = [ledger = ledger_] { return ledger->open(); };
    auto opened = co_await blocking(env_, "open", std::move(open));
    if (!opened) co_return env_.process.exit(kExitSyncFailed, opened.error().text());
    ready_ = true;
    NARAD_LOG_INFO(env_.log, "ledger open", {"records", ledger_->records().size()});
    auto listener = env_.net.listen(Endpoint{"", 80});
    auto owned = std::move(listener.value());
    for (;;) {
      auto stream = co_await accept(*owned);
      group_.spawn("session", session(std::move(stream)));
    }
  }
  Task<void> session(std::unique_ptr<Stream> stream) {
    std::string input;
    std::array<char, 256> buffer;
    for (;;) {
      for (std::size_t end = input.find('\n'); end != std::string::npos; end = input.find('\n')) {
        std::string value = input.substr(0, end);
        input.erase(0, end + 1);
        auto guard = co_await writing_.lock();
        auto append = [ledger = ledger_, value] { return ledger->append(value); };
        auto appended = co_await blocking(env_, "append", std::move(append));
        if (!appended) co_return env_.process.exit(kExitSyncFailed, appended.error().text());
        guard.release();
        const error_code failed = co_await write_all(*stream, buffers_of("ok\n"));
        if (failed) co_return;
      }
      auto [ec, n] = co_await read_some(*stream, asio::buffer(buffer));
      if (ec) co_return;
      input.append(buffer.data(), n);
    }
  }

  Env& env_;
  std::shared_ptr<Ledger> ledger_;
  Mutex writing_;
  bool ready_ = false;
  TaskGroup group_;
};

struct Oracle {
  std::set<std::string> tried, acked;
  bool calm = false;
  std::uint64_t acked_in_calm = 0;
};

class Client {
 public:
  Client(Env& env, Bug bug, std::int64_t values, std::shared_ptr<Oracle> oracle)
      : env_(env), bug_(bug), values_(values), oracle_(std::move(oracle)), group_(env) {
    group_.spawn("drive", drive());
  }

 private:
  Task<void> exchange(std::string value) {
    auto stream = co_await connect(env_, Endpoint{"node", 80});
    const error_code failed = co_await write_all(*stream, buffers_of(value, "\n"));
    if (failed) co_return;
    std::string answer(3, ' ');
    const error_code ec = co_await read_exactly(*stream, asio::buffer(answer.data(), 3));
    if (!ec && answer == "ok\n") acknowledge(value);
  }
  void acknowledge(const std::string& value) {
    oracle_->acked.insert(value);
    if (oracle_->calm) ++oracle_->acked_in_calm;
  }
  Task<void> drive() {
    for (std::int64_t i = 0; i < values_ || oracle_->acked_in_calm == 0; ++i) {
      const auto padding = static_cast<std::size_t>(env_.random.next() % 700);
      const std::string value = cat("v", i, std::string(padding, '.'));
      oracle_->tried.insert(value);
      bool finished = true;
      try {
        auto task = exchange(value);
        finished = co_await finishes_within(env_, 900ms, std::move(task));
      } catch (const boost::system::system_error& e) {
        if (e.code() == asio::error::operation_aborted) throw;
      }
      if (!finished && bug_ == Bug::acks_unanswered) acknowledge(value);
      const auto pause = static_cast<std::int64_t>(env_.random.next() % 60'000'000);
      co_await sleep_for(env_, Nanos(pause));
    }
  }

  Env& env_;
  const Bug bug_;
  const std::int64_t values_;
  std::shared_ptr<Oracle> oracle_;
  TaskGroup group_;
};

PlanShape shape() {
  PlanShape s;
  s.scenario = "ledger";
  s.kinds = {{"power-cut", 2, 40},    {"power-cut-at-call", 3, 60},
             {"exit", 1, 40},         {"cut-in-recovery", 2, 5},
             {"exit-at-call", 1, 60}, {"partition", 1, 0},
             {"one-way", 1, 1},       {"heal", 2, 0},
             {"disk-faults", 2, 3},   {"disk-ok", 1, 0},
             {"slow-net", 1, 0},      {"net-ok", 1, 0},
             {"pause", 1, 2'000},     {"clock", 1, 9},
             {"reset", 1, 0}};
  s.nodes = {1};
  return s;
}

class Run {
 public:
  Run(const Plan& plan, const RunWish& wish, Bug bug)
      : sim_(plan.seed),
        net_(sim_),
        client_(sim_, net_, 0, "client"),
        node_(sim_, net_, 1, "node") {
    sim_.set_tracing(wish.trace_lines);
    sim_.set_recording(wish.record);
    node_.set_on_down([this](Machine::Kill) { node_.boot_after(Nanos(restart_delay_)); });
    for (const Fault& fault : plan.faults) {
      sim_.at(std::chrono::milliseconds(fault.at_ms), kWorld, "fault",
              [this, fault](bool) { apply(fault); });
    }
    node_.boot([bug](Env& env) { return std::make_shared<Node>(env, bug); });
    client_.boot([this, bug, values = plan.option("workload", 60)](Env& env) {
      return std::make_shared<Client>(env, bug, values, oracle_);
    });
  }

  Outcome go() {
    sim_.run_for(9s);
    calm_down();
    const bool live = sim_.run_until([&] { return oracle_->acked_in_calm > 0; }, 60s);
    if (!live) outcome_.violation = "no progress after the faults stopped";
    check("at the end");
    node_.kill(Machine::Kill::power_cut);
    check("after a last power cut");
    count("power cuts", node_.disk().stats.cuts);
    count("torn writes", node_.disk().stats.torn);
    count("garbage sectors", node_.disk().stats.garbage);
    count("names lost", node_.disk().stats.names_lost);
    count("EIO", node_.disk().stats.eio);
    count("resets", net_.stats.resets);
    count("acked", oracle_->acked.size());
    outcome_.take(sim_);
    return std::move(outcome_);
  }

 private:
  void count(const char* mark, std::uint64_t n) {
    if (n != 0) sim_.reach().hit(mark, n);
  }
  void apply(const Fault& f) {
    sim_.note(kWorld, cat(f.kind, " ", f.number));
    sim_.reach().hit(cat("fault: ", f.kind));
    restart_delay_ = std::chrono::milliseconds(20 + f.number % 500);
    auto& disk = node_.disk().faults;
    const auto call = static_cast<std::uint64_t>(f.number) + 1;
    if (f.kind == "power-cut") node_.kill(Machine::Kill::power_cut);
    if (f.kind == "exit") node_.kill(Machine::Kill::process_exit);
    if (f.kind == "power-cut-at-call") {
      node_.kill_at_disk_call(
          call, Machine::Kill::power_cut,
          f.number % 2 == 0 ? SimFs::Cut::before_call : SimFs::Cut::during_call);
    }
    if (f.kind == "exit-at-call") node_.kill_at_disk_call(call, Machine::Kill::process_exit);
    if (f.kind == "cut-in-recovery") {
      node_.kill(Machine::Kill::power_cut);
      node_.kill_at_disk_call(call);
    }
    if (f.kind == "partition") net_.partition({1});
    if (f.kind == "one-way") f.number == 0 ? net_.block(0, 1) : net_.block(1, 0);
    if (f.kind == "heal") net_.heal();
    if (f.kind == "disk-faults") {
      disk.eio_write = disk.eio_read = 5'000;
      disk.short_write = disk.short_read = 100'000;
      if (f.number == 0) disk.eio_sync = 50'000;
    }
    if (f.kind == "disk-ok") disk = FsFaults{};
    if (f.kind == "slow-net") net_.link.slow = 200'000;
    if (f.kind == "net-ok") net_.link = Link{};
    if (f.kind == "pause") {
      node_.pause();
      sim_.after(std::chrono::milliseconds(f.number), kWorld, "resume",
                 [this](bool) { node_.resume(); });
    }
    if (f.kind == "clock") {
      node_.clock().set_rate(static_cast<Ppm>(600'000 + 100'000 * f.number));
      node_.clock().step_wall(f.number % 2 == 0 ? 1h : -1h);
    }
    if (f.kind == "reset") net_.reset_connections(0, 1);
  }
  void calm_down() {
    net_.heal();
    net_.link = Link{};
    node_.disk().faults = FsFaults{};
    node_.disk().cancel_cut();
    node_.resume();
    oracle_->calm = true;
  }
  void check(const char* when) {
    if (!outcome_.violation.empty()) return;
    if (!sim_.run_until([&] { return node_.up() && node_.component<Node>().ready(); }, 60s)) {
      outcome_.violation = cat("the node does not come up ", when);
      return;
    }
    const auto& list = node_.component<Node>().records();
    const std::set<std::string> records(list.begin(), list.end());
    for (const std::string& value : oracle_->acked) {
      if (!records.contains(value)) {
        outcome_.violation = cat("acked value lost ", when);
        return;
      }
    }
    for (const std::string& value : records) {
      if (!oracle_->tried.contains(value)) {
        outcome_.violation = cat("invented record ", when);
        return;
      }
    }
  }

  std::shared_ptr<Oracle> oracle_ = std::make_shared<Oracle>();
  Outcome outcome_;
  Nanos restart_delay_ = 50ms;
  Sim sim_;
  SimNet net_;
  Machine client_, node_;
};

Report run(Bug bug, std::uint64_t seeds, std::uint64_t failures_max) {
  RunOptions options;
  options.seeds = seeds;
  options.failures_max = failures_max;
  options.double_events_min = 500;
  for (const FaultKind& kind : shape().kinds) options.must_reach.push_back("fault: " + kind.kind);
  for (const char* mark : {"power cuts", "torn writes", "garbage sectors", "names lost", "EIO",
                           "resets", "acked", "log: ledger open"}) {
    options.must_reach.emplace_back(mark);
  }
  const auto make_plan = [](std::uint64_t seed) {
    Plan plan = draw_plan(shape(), seed);
    plan.options["workload"] = 60;
    return plan;
  };
  const auto scenario = [bug](const Plan& plan, const RunWish& wish) {
    Run run(plan, wish, bug);
    return run.go();
  };
  return run_seeds(make_plan, scenario, options);
}

TEST(Scenario, CorrectNode_PassesEverySeedAndReachesEverything) {
  const Report report = run(Bug::none, 200, 1);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(report.seeds, 200u);
  EXPECT_GT(report.doubles, 3u);
  EXPECT_GT(report.reach.count("acked"), 5'000u) << report.text();
}

class PlantedBug : public testing::TestWithParam<std::pair<Bug, const char*>> {};

TEST_P(PlantedBug, IsFoundAndShrunkToAFewFaults) {
  const Report report = run(GetParam().first, 6'000, 1);
  ASSERT_EQ(report.failures.size(), 1u) << "not found in " << report.seeds << " seeds";
  EXPECT_LE(report.failures[0].plan.faults.size(), 6u) << report.text();
  EXPECT_FALSE(report.failures[0].violation.empty());
}

INSTANTIATE_TEST_SUITE_P(Each, PlantedBug,
                         testing::Values(std::pair(Bug::ack_before_sync, "AckBeforeSync"),
                                         std::pair(Bug::no_checksum, "NoChecksum"),
                                         std::pair(Bug::no_directory_sync, "NoDirectorySync"),
                                         std::pair(Bug::trusts_page_cache, "TrustsPageCache"),
                                         std::pair(Bug::goes_on_after_failed_sync,
                                                   "GoesOnAfterFailedSync"),
                                         std::pair(Bug::acks_unanswered, "AcksUnanswered")),
                         [](const auto& info) { return std::string(info.param.second); });

}  // namespace
}  // namespace narad::sim

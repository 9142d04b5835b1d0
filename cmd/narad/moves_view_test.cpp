#include "cmd/narad/moves_view.h"

#include <gtest/gtest.h>

#include "pkg/base/text.h"

namespace narad::cli {
namespace {

// As a server answers ?detail=1: one that copies, one that nobody reports.
constexpr const char* kAnswer = R"({"moves":[
 {"topic":"orders","partition":3,"from":"n1","to":"n4","id":4711,"from_disk":"d1","to_disk":"d2",
  "reason":"joined","from_status":"alive","to_status":"alive","blocked":[],"started_at":1783615000,
  "report":{"phase":"copying","bytes_done":1288490189,"bytes_total":3650722201,
   "bytes_per_second":47290777,"write_bytes_per_second":1024,"seconds_left":49,"passes":1,
   "attempts":1,"frozen_ms":0}},
 {"topic":"a","partition":12,"from":"node-2","to":"n4","id":4712,"from_disk":"d1","to_disk":"d1",
  "reason":"operator","from_status":"dead","to_status":"alive","blocked":["source_dead"],
  "report_error":"node n4 did not answer in 1.5s"}]})";

std::vector<MoveView> some_moves() { return read_moves(kAnswer).value().moves; }
MoveView copying() { return some_moves()[0]; }

TEST(MovesTable, OBS_1_OBS_2_OneAlignedLinePerMove) {
  EXPECT_EQ(
      moves_table(some_moves(), false),
      "PARTITION  FROM           TO  PHASE              COPIED    %       RATE  LEFT  FROZEN  HELD "
      "UP BY\n"
      "orders/3   n1             n4  copying  1.2GiB of 3.4GiB  35%  45.1MiB/s   49s       -  -\n"
      "a/12       node-2 (dead)  n4  -                       -    -          -     -       -  "
      "source_dead\n");
  EXPECT_EQ(moves_table({}, false), "no moves\n");
}

TEST(MovesTable, OBS_3_Detail_AddsWhatTheDestinationSays) {
  const std::string table = moves_table(some_moves(), true);
  EXPECT_NE(
      table.find("    move 4711, joined, since 2026-07-09T16:36:40Z; n1 is alive, n4 is alive\n"
                 "    pass 1, attempt 1; 1.0KiB/s written meanwhile\n"),
      std::string::npos)
      << table;
  EXPECT_NE(table.find("    no report: node n4 did not answer in 1.5s\n"), std::string::npos);
}

TEST(MovesTable, Stalled_IsSaidInsteadOfATimeLeft) {
  MoveView m = copying();
  m.report->seconds_left.reset();
  m.report->stalled_seconds = 40;
  m.report->frozen_ms = 12;
  const std::string table = moves_table({m}, false);
  EXPECT_NE(table.find("stalled 40s"), std::string::npos) << table;
  EXPECT_NE(table.find("12ms"), std::string::npos) << table;
}

TEST(MovesTable, WhatAServerSays_StaysOneLineAndMovesNoCursor) {
  const auto view = read_moves(
      R"({"moves":[{"topic":"a\nb\u001b[2J","partition":1,"from":"x\r","to":"y","id":1}]})");
  const std::string table = moves_table(view.value().moves, true);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  EXPECT_EQ(table.find('\r'), std::string::npos);
  EXPECT_NE(table.find("a\\x0ab\\x1b[2J/1"), std::string::npos) << table;
}

TEST(ReadMoves, WhatIsNoAnswer_IsRefused_AndOddFieldsAreOverlooked) {
  for (const char* body : {"", "[]", "{}", R"({"moves":5})", "{"}) {
    EXPECT_EQ(read_moves(body).error().code(), Errc::data_loss) << body;
  }
  const auto odd = read_moves(
      R"({"moves":[7,{"topic":5,"partition":-1,"id":"x","blocked":[1,"b"],"report":[],
          "started_at":9223372036854775807}]})");
  ASSERT_EQ(odd.value().moves.size(), 1u);
  EXPECT_EQ(odd.value().moves[0].blocked, std::vector<std::string>{"b"});
  EXPECT_FALSE(odd.value().moves[0].report);
  EXPECT_NE(moves_table(odd.value().moves, true), "");
}

TEST(Bar, IsFullOnlyWhenAllIsDone) {
  EXPECT_EQ(bar(0, 100, 10), "[..........]");
  EXPECT_EQ(bar(49, 100, 10), "[####......]");
  EXPECT_EQ(bar(999'999'999, 1'000'000'000, 10), "[#########.]");
  EXPECT_EQ(bar(100, 100, 10), "[##########]");
  EXPECT_EQ(bar(200, 100, 10), "[##########]");
  EXPECT_EQ(bar(5, 0, 10), "[..........]") << "of nothing known";
}

// ---- watching

ScreenSize screen(std::size_t rows, std::size_t columns) {
  ScreenSize size;
  size.rows = rows;
  size.columns = columns;
  return size;
}

TEST(WatchScreen, EachMoveHasABar) {
  const auto lines = watch_screen(some_moves(), {"then this"}, screen(24, 200));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_NE(lines[1].find("[#######.............]"), std::string::npos) << lines[1];
  EXPECT_EQ(lines[3], "");
  EXPECT_EQ(lines[4], "then this");
  EXPECT_EQ(watch_screen({}, {}, screen(24, 80)), std::vector<std::string>{"no moves"});
}

TEST(WatchScreen, NeverMoreOrWiderThanTheScreen) {
  std::vector<MoveView> many(50, copying());
  many[0].blocked = {std::string(500, 'x'), "\xc3\xa4\xc3\xa4"};
  const std::vector<std::string> recent(20, std::string(300, 'y'));
  for (std::size_t rows = 1; rows < 60; ++rows) {
    for (std::size_t columns : {1, 20, 81, 400}) {
      const auto lines = watch_screen(many, recent, screen(rows, columns));
      EXPECT_LT(lines.size(), std::max<std::size_t>(rows, 3)) << rows;
      for (const std::string& line : lines) {
        EXPECT_LE(line.size(), columns);
        EXPECT_TRUE(is_utf8(line));
      }
    }
  }
  const auto lines = watch_screen(many, {}, screen(10, 80));
  EXPECT_EQ(lines.back(), "... and 43 more") << "nine lines: a heading, seven moves and this";
}

TEST(WatchChanges, ANewMove_IsToldWithItsNumber) {
  const auto lines = changes({}, some_moves());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            "orders/3: move 4711 from n1 to n4 (joined); copying 35%, 1.2GiB of 3.4GiB, 45.1MiB/s, "
            "49s left");
  EXPECT_EQ(lines[1],
            "a/12: move 4712 from node-2 to n4 (operator); no report: node n4 did not answer in "
            "1.5s; node-2 is dead; held up by source_dead");
}

TEST(WatchChanges, OnlyWhatAPersonWouldWantToHear_IsTold) {
  const std::vector<MoveView> before{copying()};
  const auto told = [&](const std::function<void(MoveView&)>& edit) {
    std::vector<MoveView> now = before;
    edit(now[0]);
    const auto lines = changes(before, now);
    return lines.empty() ? std::string() : lines[0];
  };
  EXPECT_EQ(told([](MoveView&) {}), "");
  EXPECT_EQ(told([](MoveView& m) {
              m.report->bytes_done += 1'000'000;
              m.report->bytes_per_second /= 2;
              m.report->seconds_left = 99;
              m.report->passes = 2;
            }),
            "")
      << "bytes within a tenth";
  EXPECT_NE(told([](MoveView& m) { m.report->bytes_done = 1'500'000'000; }).find("copying 41%"),
            std::string::npos);
  EXPECT_NE(told([](MoveView& m) { m.report->phase = "freezing"; }).find("freezing"),
            std::string::npos);
  EXPECT_NE(told([](MoveView& m) {
              m.blocked = {"copy_unverifiable"};
            }).find("held up by copy_unverifiable"),
            std::string::npos);
  EXPECT_NE(told([](MoveView& m) {
              m.report->seconds_left.reset();
              m.report->stalled_seconds = 31;
            }).find("stalled 31s"),
            std::string::npos);
  EXPECT_NE(told([](MoveView& m) { m.to_status = "draining"; }).find("n4 is draining"),
            std::string::npos);
  EXPECT_NE(told([](MoveView& m) { m.report->last_error = "no way"; }).find("; no way"),
            std::string::npos);
  EXPECT_NE(told([](MoveView& m) {
              m.report.reset();
              m.report_error = "gone quiet";
            }).find("no report: gone quiet"),
            std::string::npos);
}

TEST(WatchChanges, AMoveThatIsGone_IsNoChangeButAnEnd) {
  const auto before = some_moves();
  const std::vector<MoveView> now{before[1]};
  EXPECT_TRUE(changes(before, now).empty());
  const auto ended = gone(before, now);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].id, 4711u);
}

// ---- several that were aborted

std::vector<AbortedMove> some_aborted() {
  const auto moves = some_moves();
  return {{moves[0], AbortEnd::aborted, {}},
          {moves[1], AbortEnd::refused, "http 409: its owner is n4 since move 4712"},
          {moves[0], AbortEnd::unknown, "http 503: nobody could say"},
          {moves[1], AbortEnd::untried, {}}};
}

TEST(AbortsPage, EachMove_HasASentenceOfItsOwn) {
  EXPECT_EQ(
      aborts_page(some_aborted()),
      "orders/3: move 4711 to n4 was aborted; it stays on n1\n"
      "a/12: move 4712 to n4 was not aborted: http 409: its owner is n4 since move 4712\n"
      "orders/3: move 4711 to n4: whether it was aborted is not known: http 503: nobody could "
      "say\n"
      "a/12: move 4712 to n4 goes on: it was not tried after that\n");
  EXPECT_EQ(aborts_page({}), "no moves\n");
}

TEST(AbortsJson, SaysTheSame) {
  auto moves = some_aborted();
  moves.pop_back();
  moves.pop_back();
  EXPECT_EQ(
      aborts_json(moves),
      R"({"moves":[{"topic":"orders","partition":3,"id":4711,"from":"n1","to":"n4",)"
      R"("outcome":"aborted"},{"topic":"a","partition":12,"id":4712,"from":"node-2",)"
      R"("to":"n4","outcome":"refused","why":"http 409: its owner is n4 since move 4712"}]})");
  EXPECT_EQ(aborts_json({}), R"({"moves":[]})");
}

TEST(WorstOfAborts, WhatNobodyKnows_OutweighsARefusal) {
  auto moves = some_aborted();
  EXPECT_EQ(worst_of(moves), AbortEnd::untried);
  moves.pop_back();
  EXPECT_EQ(worst_of(moves), AbortEnd::unknown);
  moves.pop_back();
  EXPECT_EQ(worst_of(moves), AbortEnd::refused);
  moves.pop_back();
  EXPECT_EQ(worst_of(moves), AbortEnd::aborted);
  EXPECT_EQ(worst_of({}), AbortEnd::aborted) << "nothing was under way";
}

// ---- what has ended

constexpr const char* kEnded = R"({"topic":"orders","partition":3,"from":"n1","to":"n4","id":4711,
 "from_disk":"d1","to_disk":"d2","reason":"joined","outcome":"moved","started_at":1783615000,
 "ended_at":1783615130,"took_ms":130400,
 "receipt":{"records":9000000,"first":100,"end":9000100,"bytes":3650722201,
  "digest":"00ff00ff00ff00ff","frozen_ms":12,"passes":3,"retries":1,"damaged_blocks":0,
  "copy_ms":129000,"drain_ms":900,"verify_ms":7,"install_ms":2,"flip_ms":3}})";

EndedMoveView ended() { return *read_move(kEnded).value().ended; }

TEST(MovePage, OfAnEndedMove_HasItsReceipt) {
  EXPECT_EQ(move_page(ended()),
            "Move 4711: orders/3 from n1, disk d1 to n4, disk d2\n"
            "  outcome     moved to n4\n"
            "  reason      joined\n"
            "  started     2026-07-09T16:36:40Z\n"
            "  ended       2026-07-09T16:38:50Z\n"
            "  took        2m10s\n"
            "  records     9000000, offsets 100 to below 9000100\n"
            "  bytes       3.4GiB, digest 00ff00ff00ff00ff\n"
            "  frozen      12ms\n"
            "  work        passes 3, retries 1\n"
            "  phases      copy 2m9s, drain 900ms, verify 7ms, install 2ms, flip 3ms\n");
  EndedMoveView damaged = ended();
  damaged.receipt->damaged_blocks = 2;
  EXPECT_NE(move_page(damaged).find("2 blocks read otherwise at n1"), std::string::npos);
}

TEST(MovePage, OfOneUnderWay_SaysHowFarAndWhatHoldsItUp) {
  const std::string page = move_page(copying());
  EXPECT_NE(page.find("  copied      1.2GiB of 3.4GiB (35%)\n"), std::string::npos) << page;
  EXPECT_NE(page.find("  left        49s\n"), std::string::npos) << page;
  const std::string other = move_page(some_moves()[1]);
  EXPECT_NE(other.find("  held up by  source_dead\n"), std::string::npos) << other;
  EXPECT_NE(other.find("  no report   node n4 did not answer in 1.5s\n"), std::string::npos);
}

TEST(EndLine, EveryOutcome_IsASentence) {
  EndedMoveView m = ended();
  EXPECT_EQ(end_line(m), "orders/3: move 4711: moved to n4, after 2m10s, 3.4GiB, frozen 12ms");
  m.receipt.reset();
  m.took_ms.reset();
  m.outcome = "cleared";
  m.why = "aborted by ann";
  EXPECT_EQ(end_line(m), "orders/3: move 4711: given up; it stays on n1 (aborted by ann)");
  m.why.clear();
  const auto said = [&](std::string outcome) {
    m.outcome = std::move(outcome);
    return end_line(m).substr(std::string_view("orders/3: move 4711: ").size());
  };
  EXPECT_EQ(said("promoted"), "n4 took over without n1, which was dead");
  EXPECT_EQ(said("given"), "given to n4 at once: it was never used");
  EXPECT_EQ(said("replaced"), "replaced by a later move");
  EXPECT_EQ(said("topic_deleted"), "over: its topic was deleted");
  EXPECT_EQ(said("of_a_later_release"), "of_a_later_release");
}

TEST(HistoryTable, OneLineEach) {
  EndedMoveView cleared = ended();
  cleared.outcome = "cleared";
  cleared.why = "aborted by ann";
  cleared.receipt.reset();
  EXPECT_EQ(
      history_table({ended(), cleared}),
      "ENDED                 MOVE  PARTITION  FROM  TO  OUTCOME   TOOK   BYTES  FROZEN  WHY\n"
      "2026-07-09T16:38:50Z  4711  orders/3   n1    n4  moved    2m10s  3.4GiB    12ms  joined\n"
      "2026-07-09T16:38:50Z  4711  orders/3   n1    n4  cleared  2m10s       -       -  joined; "
      "aborted by ann\n");
  EXPECT_EQ(history_table({}), "no moves have ended\n");
}

TEST(ThrottleView, IsASentence) {
  const auto said = [](const char* body) { return throttle_text(read_throttle(body).value()); };
  EXPECT_EQ(said(R"({"set":false})"), "moves: each node goes by its own configuration\n");
  EXPECT_EQ(said(R"({"set":true,"max_bytes_per_second":0})"), "moves: no limit\n");
  EXPECT_EQ(said(R"({"set":true,"max_bytes_per_second":8388608,"changed":true})"),
            "moves: at most 8.0MiB/s into each node\n");
  EXPECT_EQ(said(R"({"set":false,"changed":false})"),
            "moves: each node goes by its own configuration, as before\n");
  EXPECT_EQ(read_throttle("[]").error().code(), Errc::data_loss);
  EXPECT_EQ(read_moves(R"({"moves":[],"max_bytes_per_second":4096})").value().rate, 4096u);
}

TEST(Rate, IsBytesPerSecondOrOff) {
  EXPECT_EQ(parse_rate("50MB/s").value(), 50'000'000u);
  EXPECT_EQ(parse_rate("8MiB").value(), 8u << 20);
  EXPECT_EQ(parse_rate("65536").value(), 65'536u);
  EXPECT_EQ(parse_rate("off").value(), 0u);
  for (const char* bad : {"", "/s", "0", "0/s", "fast", "5MB/h", "-1", "5MB/s/s"}) {
    EXPECT_EQ(parse_rate(bad).error().code(), Errc::invalid_argument) << bad;
  }
}

TEST(PauseView, IsASentenceAndWhatIsLeft) {
  const auto said = [](const char* body) { return pause_text(read_pause(body).value()); };
  EXPECT_EQ(said(R"({"paused":true,"changed":true})"), "all moves are paused\n");
  EXPECT_EQ(said(R"({"paused":false,"changed":true})"), "all moves go on\n");
  EXPECT_EQ(said(R"({"node":"n2","paused":true,"changed":false})"),
            "moves from and to n2 are paused, as before\n");
  EXPECT_EQ(said(R"({"node":"n2","paused":false,"changed":false})"),
            "moves from and to n2 go on: nothing of that kind was paused\n");
  EXPECT_EQ(said(R"({"topic":"orders","partition":3,"id":7,"paused":true,"changed":true,)"
                 R"("paused_by":["move"]})"),
            "move 7 of orders/3 is paused\n");
  EXPECT_EQ(said(R"({"topic":"orders","partition":3,"id":7,"paused":false,"changed":true,)"
                 R"("paused_by":["source","cluster"]})"),
            "move 7 of orders/3 goes on\n"
            "it waits all the same: moves of the node it comes from are paused; see narad cluster "
            "moves\n"
            "it waits all the same: all moves are paused; see narad cluster moves\n");
  EXPECT_EQ(read_pause("7").error().code(), Errc::data_loss);
}

TEST(MovesTable, APausedMove_SaysWhatPausesIt) {
  MovesView view =
      read_moves(R"({"paused":true,"moves":[{"id":7,"topic":"orders","partition":3,"from":"n1",
        "to":"n2","from_status":"alive","to_status":"alive","blocked":["source_dead"],
        "paused_by":["move","source","target","cluster"]}]})")
          .value();
  EXPECT_TRUE(view.paused);
  const std::string table = moves_table(view.moves, false);
  EXPECT_NE(table.find("source_dead, pause, pause of n1, pause of n2, pause of all moves"),
            std::string::npos)
      << table;
  std::vector<MoveView> before = view.moves;
  before[0].paused_by.clear();
  ASSERT_EQ(changes(before, view.moves).size(), 1u);
}

TEST(StartedMove, ABudgetBelowWhatIsWritten_IsSaidAtOnce) {
  const std::string head =
      R"({"topic":"orders","partition":3,"from":"n1","to":"n2","to_disk":"d1","id":7,"outcome":"started")";
  const auto said = [](const std::string& body) {
    return started_text(read_started(body).value());
  };
  EXPECT_EQ(said(head + "}"),
            "orders/3 moves from n1 to n2 (disk d1): move 7\n"
            "see narad cluster moves --watch --topic orders\n");
  EXPECT_EQ(said(head + R"(,"will_not_converge":{"write_bytes_per_second":8192,)"
                        R"("budget_bytes_per_second":4096}})"),
            "orders/3 moves from n1 to n2 (disk d1): move 7\n"
            "will not converge at 4.0KiB/s: orders/3 takes in 8.0KiB/s; the rest would be copied "
            "while it is frozen\n"
            "see narad cluster moves --watch --topic orders\n");
}

TEST(MovesTable, ABudgetBelowWhatIsWritten_IsSaid) {
  const auto with = [](int budget) {
    return read_moves(cat(R"({"moves":[{"id":7,"topic":"orders","partition":3,"from":"n1","to":"n2",
        "blocked":[],"report":{"phase":"copying","bytes_done":1,"bytes_total":9,
        "bytes_per_second":5000,"write_bytes_per_second":8192,"budget_bytes_per_second":)",
                          budget, "}}]}"))
        .value()
        .moves;
  };
  const char* said =
      "will not converge at 4.0KiB/s: orders/3 takes in 8.0KiB/s; the rest would be copied while "
      "it "
      "is frozen";
  EXPECT_EQ(slow_lines(with(4096)), cat(said, "\n"));
  EXPECT_NE(moves_table(with(4096), true).find(said), std::string::npos);
  EXPECT_NE(move_page(with(4096)[0]).find(said), std::string::npos);
  EXPECT_NE(changes(with(0), with(4096)).at(0).find(said), std::string::npos);
  for (const int enough : {0, 8193}) EXPECT_EQ(slow_lines(with(enough)), "") << enough;
}

}  // namespace
}  // namespace narad::cli

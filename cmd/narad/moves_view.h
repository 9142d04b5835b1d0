#pragma once
// Moves of partitions as a person reads them: read from an answer, as tables, bars, lines about
// what changed, and the page of one move. Pure. What a server says is escaped here, since one line
// of it must stay one line.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/narad/terminal.h"
#include "pkg/base/result.h"

namespace narad::cli {

// What the destination says.
struct MoveReportView {
  std::string phase;
  std::uint64_t bytes_done = 0, bytes_total = 0;
  std::uint64_t bytes_per_second = 0, write_bytes_per_second = 0;
  std::uint64_t budget_bytes_per_second = 0;  // 0: none that is known
  std::optional<std::uint64_t> seconds_left, stalled_seconds;
  std::uint64_t passes = 0, attempts = 0, frozen_ms = 0;
  std::string last_error;
};

struct MoveView {
  std::uint64_t id = 0;
  std::string topic;
  std::uint64_t partition = 0;
  std::string from, from_disk, from_status;
  std::string to, to_disk, to_status;
  std::string reason;
  std::vector<std::string> blocked;
  std::vector<std::string> paused_by;  // move, source, target, cluster
  std::int64_t started_at = 0;         // Unix seconds; 0: not said
  std::uint64_t rate = 0;              // what it is held to itself; 0: nothing
  std::optional<MoveReportView> report;
  std::string report_error;
};

// What a move brought, as far as it was said.
struct ReceiptView {
  std::uint64_t records = 0, first = 0, end = 0, bytes = 0;
  std::uint64_t frozen_ms = 0, passes = 0, retries = 0, damaged_blocks = 0;
  std::uint64_t copy_ms = 0, drain_ms = 0, verify_ms = 0, install_ms = 0, flip_ms = 0;
  std::string digest;
};

struct EndedMoveView {
  std::uint64_t id = 0;
  std::string topic;
  std::uint64_t partition = 0;
  std::string from, from_disk, to, to_disk, reason, outcome, why;
  std::int64_t started_at = 0, ended_at = 0;
  std::optional<std::uint64_t> took_ms;
  std::optional<ReceiptView> receipt;
};

struct MovesView {
  std::vector<MoveView> moves;
  bool paused = false;                // all of them
  std::optional<std::uint64_t> rate;  // of all of them, if it was set; 0: no limit
  std::vector<EndedMoveView> history;
};

// data_loss if that is no such answer.
Result<MovesView> read_moves(std::string body);
struct OneMove {
  std::optional<MoveView> running;
  std::optional<EndedMoveView> ended;
};
Result<OneMove> read_move(std::string body);

// What an order came to.
struct StartedMove {
  std::uint64_t id = 0;
  std::string topic;
  std::uint64_t partition = 0;
  std::string from, to, to_disk, outcome;
  // Bytes per second, if it will not converge.
  std::uint64_t written = 0, budget = 0;
};
Result<StartedMove> read_started(std::string body);
// A sentence and what to do next; of an order to abort, a sentence.
std::string started_text(const StartedMove& move);
std::string aborted_text(const StartedMove& move);

// What became of an order to let moves wait, or go on.
struct PauseView {
  std::string topic;  // of one move
  std::uint64_t partition = 0, id = 0;
  std::string node;  // of the moves of one node; neither: of all
  bool paused = false, changed = false;
  std::vector<std::string> paused_by;
};
Result<PauseView> read_pause(std::string body);
// A sentence, and what makes a resumed move wait all the same.
std::string pause_text(const PauseView& pause);

// What moves are held to.
struct ThrottleView {
  std::optional<std::uint64_t> rate;  // nothing: by each node's configuration; 0: no limit
  std::optional<bool> changed;        // after an order
};
Result<ThrottleView> read_throttle(std::string body);
// A sentence.
std::string throttle_text(const ThrottleView& throttle);
// "50MB/s", "8MiB", "1000000", in bytes per second; "off": 0, no limit. invalid_argument.
Result<std::uint64_t> parse_rate(std::string_view text);

// What came of aborting one of several moves.
enum class AbortEnd : std::uint8_t {
  aborted,
  refused,  // by the state of things: it has ended, or goes elsewhere now
  unknown,  // nobody could say
  untried,  // since one before it was unknown
};
struct AbortedMove {
  MoveView move;
  AbortEnd end = AbortEnd::untried;
  std::string why;  // refused, unknown
};
// What a caller acts on: nothing untried or unknown, then nothing refused.
AbortEnd worst_of(const std::vector<AbortedMove>& moves);
// A sentence per move; "no moves".
std::string aborts_page(const std::vector<AbortedMove>& moves);
// {"moves":[{"topic","partition","id","from","to","outcome"[,"why"]}]}.
std::string aborts_json(const std::vector<AbortedMove>& moves);

// One line per move, aligned under a heading; "no moves". With `detail` further lines below each.
std::string moves_table(const std::vector<MoveView>& moves, bool detail);
// A line per move that gets no more than is written meanwhile.
std::string slow_lines(const std::vector<MoveView>& moves);
// The newest first, as they are.
std::string history_table(const std::vector<EndedMoveView>& moves);
std::string move_page(const MoveView& move);
std::string move_page(const EndedMoveView& move);

// "[#####.....]": as much of `width` as has been done; never full before all is.
std::string bar(std::uint64_t done, std::uint64_t total, std::size_t width);

// What a screen of that size shows: never more lines, none of them wider.
std::vector<std::string> watch_screen(const std::vector<MoveView>& moves,
                                      const std::vector<std::string>& recent, ScreenSize size);

// What is new since `before`, a line per move: it began, its phase changed, another tenth is
// copied, something holds it up or does not any more. Says nothing of moves that are gone.
std::vector<std::string> changes(const std::vector<MoveView>& before,
                                 const std::vector<MoveView>& now);
std::vector<MoveView> gone(const std::vector<MoveView>& before, const std::vector<MoveView>& now);
// What became of one that is gone, as such a line.
std::string end_line(const EndedMoveView& move);

}  // namespace narad::cli

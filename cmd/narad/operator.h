#pragma once
// What the commands of operators (`narad cluster ...`) share: their manners (cli-and-operators).
#include <optional>
#include <string>
#include <string_view>

#include "cmd/narad/session.h"

namespace narad::cli {

inline constexpr int kRefused = 1;
inline constexpr int kUsage = 2;
inline constexpr int kInterrupted = 130;

// Whether people read this: asked for, or standard output is a terminal.
bool wants_text(const Session& s);
// Says so, and where the usage stands; kUsage.
int usage(const Session& s, std::string_view text);
// Asking the same server again may answer.
bool may_pass(const Error& error);
// The operand PARTITION, which stands behind TOPIC; complains (usage) if it is no number.
std::optional<std::uint32_t> partition_operand(const Session& s);
// Asks on standard error, where no program's answer is; true if somebody says yes.
bool agreed(Session& s, std::string_view question);
// Ends with SIGINT or SIGTERM. REQUIRES: SessionOptions::signals.
Task<void> interruption(Session& s);

// The answer: as it is where a program reads it, else as `page` of what `read` finds in it.
template <class Read, class Page>
Result<int> show_answer(Session& s, std::string body, Read read, Page page) {
  if (!wants_text(s)) {
    print_json(s.terminal, body);
    return 0;
  }
  NARAD_TRY(const auto view, read(std::move(body)));
  print_out(s.terminal, page(view));
  return 0;
}

}  // namespace narad::cli

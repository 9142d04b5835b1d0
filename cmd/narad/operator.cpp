#include "cmd/narad/operator.h"

#include "pkg/base/text.h"

namespace narad::cli {

bool wants_text(const Session& s) {
  const std::string output = s.args.text("output");
  return output.empty() ? s.terminal.out_is_terminal() : output == "text";
}

int usage(const Session& s, std::string_view text) {
  complain(s.terminal, cat(text, "; see narad help ", s.args.path().text().substr(6)));
  return kUsage;
}

bool may_pass(const Error& error) {
  return error.code() == Errc::unavailable || error.code() == Errc::unknown_outcome ||
         error.code() == Errc::busy;
}

std::optional<std::uint32_t> partition_operand(const Session& s) {
  const auto partition = parse_number<std::uint32_t>(s.args.operand(1));
  if (!partition) {
    (void)usage(s, cat("a partition has a number, which ", s.args.operand(1), " is not"));
  }
  return partition;
}

bool agreed(Session& s, std::string_view question) {
  print_err(s.terminal, cat(question, " [y/N] "));
  const std::string answer = s.terminal.read_line();
  return answer == "y" || answer == "Y" || answer == "yes";
}

Task<void> interruption(Session& s) { co_await next_signal(s.env); }

}  // namespace narad::cli

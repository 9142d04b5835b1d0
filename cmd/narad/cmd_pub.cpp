#include "cmd/narad/commands.h"
#include "cmd/narad/file.h"
#include "cmd/narad/format.h"
#include "cmd/narad/session.h"
#include "pkg/base/text.h"

namespace narad::cli {
namespace {

// Read whole before sending; what is too large for the broker is refused there, not here.
constexpr std::size_t kInputBytesMax = std::size_t{64} << 20;

Result<std::string> read_message(const Session& s) {
  if (std::string path = s.args.text("file"); !path.empty()) {
    return read_whole(path, kInputBytesMax);
  }
  if (s.args.operand_count() > 1 && s.args.operand(1) != "-") return s.args.operand(1);
  return s.terminal.read_all(kInputBytesMax);
}

Task<Result<int>> run(Session& s) {
  NARAD_CO_TRY(auto message, read_message(s));
  client::ProduceOptions options;
  options.key = s.args.text("key");
  if (std::int64_t p = s.args.integer("partition"); p >= 0) {
    options.partition = PartitionId(static_cast<std::uint32_t>(p));
  }
  std::int64_t count = s.args.integer("count");
  const std::string& topic = s.args.operand(0);
  if (count <= 1) {
    NARAD_CO_TRY(co_await s.client.produce(topic, message, options));
    s.terminal.err(cat("accepted (", message.size(), " bytes)\n"));
    co_return 0;
  }
  std::int64_t rate = s.args.integer("rate");
  Nanos start = s.env.clock.mono();
  for (std::int64_t i = 0; i < count; ++i) {
    if (rate > 0) {
      Nanos due = start + Nanos(static_cast<std::int64_t>(1e9 * static_cast<double>(i) /
                                                          static_cast<double>(rate)));
      Nanos now = s.env.clock.mono();
      if (due > now) co_await sleep_for(s.env, due - now);
    }
    auto sent = co_await s.client.produce(topic, message, options);
    if (!sent) co_return sent.error().with_context(cat("message ", i + 1, " of ", count));
  }
  Nanos took = s.env.clock.mono() - start;
  s.terminal.err(cat("accepted ", count, " messages in ", short_duration(took), " (",
                     rate_text(static_cast<std::uint64_t>(count), took), " msg/s)\n"));
  co_return 0;
}

}  // namespace

int pub(const Arguments& a, Terminal& t) { return run_session(a, t, run); }

}  // namespace narad::cli

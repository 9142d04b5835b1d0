// `narad server report`: messages and bytes of every topic.
#include <set>

#include "cmd/narad/commands.h"
#include "cmd/narad/format.h"
#include "cmd/narad/session.h"
#include "pkg/base/text.h"

namespace narad::cli {
namespace {

constexpr std::uint32_t kTopicsMax = 1000;

std::string row(std::string_view topic, std::string_view partitions, std::string_view messages,
                std::string_view size, std::string_view owners, std::string_view role) {
  return cat(left(topic, 28), ' ', right(partitions, 6), ' ', right(messages, 12), ' ',
             right(size, 10), ' ', right(owners, 7), "  ", role, "\n");
}

struct Totals {
  std::uint64_t partitions = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::set<std::string> owners;
};

std::string topic_row(const client::TopicInfo& topic, Totals& totals) {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::set<std::string> owners;
  for (const client::PartitionStats& p : topic.stats) {
    messages += p.high_watermark.value();
    bytes += p.size_bytes;
    if (!p.owner_node.empty()) owners.insert(p.owner_node);
  }
  totals.messages += messages;
  totals.bytes += bytes;
  totals.owners.insert(owners.begin(), owners.end());
  return row(topic.name, cat(topic.partitions), cat(messages), short_bytes(bytes),
             cat(owners.size()), topic.role);
}

Task<Result<int>> run(Session& s) {
  NARAD_CO_TRY(auto page, co_await s.client.list_topics(kTopicsMax, ""));
  if (page.topics.empty()) {
    s.terminal.out("no topics\n");
    co_return 0;
  }
  std::string header = row("TOPIC", "PARTS", "MESSAGES", "SIZE", "OWNERS", "ROLE");
  std::string out;
  Totals totals;
  for (const client::TopicInfo& listed : page.topics) {
    totals.partitions += listed.partitions;
    auto topic = co_await s.client.topic(listed.name);
    if (topic) {
      out += topic_row(topic.value(), totals);
    } else {
      out += cat(left(listed.name, 28), " (stats unavailable: ", topic.error().text(), ")\n");
    }
  }
  out += row("total", cat(totals.partitions), cat(totals.messages), short_bytes(totals.bytes),
             cat(totals.owners.size()), "");
  s.terminal.out(s.terminal.faint(header));
  print_out(s.terminal, out);
  co_return 0;
}

}  // namespace

int server_report(const Arguments& a, Terminal& t) { return run_session(a, t, run); }

}  // namespace narad::cli

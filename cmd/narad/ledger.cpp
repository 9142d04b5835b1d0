#include "cmd/narad/ledger.h"

#include "pkg/base/ids.h"
#include "pkg/base/text.h"

namespace narad::cli {
namespace {

// An index above this is not one of ours, whatever the text says.
constexpr std::uint64_t kIndexMax = 1'000'000'000;
constexpr std::string_view kEnd = "\"}";

}  // namespace

Ledger::Ledger(std::uint64_t run, std::size_t size)
    : prefix_(cat("{\"bench\":\"", to_hex16(run), "-")), size_(size) {}

std::string Ledger::payload(std::uint64_t index) const {
  std::string text = cat(prefix_, index, "-");
  if (text.size() + kEnd.size() < size_) text.append(size_ - text.size() - kEnd.size(), 'x');
  return cat(text, kEnd);
}

Ledger::Entry& Ledger::entry(std::uint64_t index) {
  if (index >= entries_.size()) entries_.resize(index + 1);
  return entries_[index];
}

void Ledger::sent(std::uint64_t index, Sent outcome) {
  Entry& e = entry(index);
  if (outcome == Sent::accepted && e.outcome != Sent::accepted && e.deliveries == 0) ++missing_;
  e.outcome = outcome;
}

bool Ledger::came_back(std::string_view text) {
  if (!text.starts_with(prefix_)) {
    ++foreign_;
    return false;
  }
  std::string_view rest = text.substr(prefix_.size());
  auto index = parse_number<std::uint64_t>(rest.substr(0, std::min(rest.find('-'), rest.size())));
  if (!index || *index > kIndexMax || text != payload(*index)) {
    ++damaged_;
    return true;
  }
  Entry& e = entry(*index);
  if (e.deliveries++ == 0 && e.outcome == Sent::accepted) --missing_;
  return true;
}

Tally Ledger::tally() const {
  Tally t;
  t.damaged = damaged_;
  t.foreign = foreign_;
  for (const Entry& e : entries_) {
    bool came = e.deliveries > 0;
    if (came) {
      ++t.delivered;
      t.duplicated += e.deliveries - 1;
    }
    if (e.outcome == Sent::accepted) {
      ++t.accepted;
      if (!came) ++t.lost;
    } else if (e.outcome == Sent::unknown) {
      ++t.unknown;
      if (came) ++t.unknown_delivered;
    }
  }
  return t;
}

}  // namespace narad::cli

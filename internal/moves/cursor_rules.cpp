#include "internal/moves/cursor_rules.h"

#include <algorithm>

#include "pkg/base/text.h"

namespace narad::moves {
namespace {

bool contains(const std::vector<wire::ChildLink>& links, const wire::ChildLink& link) {
  return std::find(links.begin(), links.end(), link) != links.end();
}

}  // namespace

std::vector<wire::ChildLink> links_of(const metastore::State& state, const std::string& parent) {
  std::vector<wire::ChildLink> links;
  const auto* row = state.topics.find(parent);
  if (row == nullptr) return links;
  for (const std::string& child : row->topic.children) {
    if (const auto* its = state.topics.find(child)) {
      links.push_back({child, its->topic.attach_epoch});
    }
  }
  return links;
}

std::vector<wire::ChildLink> joined_links(std::vector<wire::ChildLink> links,
                                          const std::vector<wire::ChildLink>& more) {
  for (const wire::ChildLink& link : more) {
    if (!contains(links, link)) links.push_back(link);
  }
  return links;
}

const FanoutCursor* cursor_of(const LinkRecords& records, const wire::ChildLink& link) {
  const auto epoch = parse_hex16(link.epoch);
  const auto at = std::find_if(
      records.cursors.begin(), records.cursors.end(),
      [&](const FanoutCursor& c) { return c.child == link.child && epoch == c.epoch; });
  return at == records.cursors.end() ? nullptr : &*at;
}

CursorStart cursor_start(const LinkRecords& records, const wire::ChildLink& link, Offset oldest,
                         Offset hwm) {
  using From = CursorStart::From;
  if (const FanoutCursor* cursor = cursor_of(records, link)) {
    return {From::cursor, std::min(cursor->next, hwm)};
  }
  const auto& damaged = records.damaged;
  const bool lost =
      std::find(damaged.begin(), damaged.end(), cursor_file_name(link.child)) != damaged.end();
  if (lost || records.marker_unreadable || contains(records.installed, link)) {
    return {From::oldest, oldest};
  }
  return {From::tail, hwm};
}

std::vector<wire::Sidecar> with_anchors(std::vector<wire::Sidecar> shipped,
                                        const LinkRecords& records,
                                        const std::vector<wire::ChildLink>& links,
                                        Incarnation parent, Offset oldest, Offset hwm) {
  for (const wire::ChildLink& link : links) {
    const auto epoch = parse_hex16(link.epoch);
    if (!epoch || cursor_of(records, link) != nullptr) continue;
    // One of an earlier attachment makes way.
    std::erase_if(shipped, [&](const wire::Sidecar& s) { return s.child == link.child; });
    if (shipped.size() >= wire::kSidecarsMax) continue;
    const CursorStart start = cursor_start(records, link, oldest, hwm);
    const Bytes file = encode_cursor_file({1, *epoch, start.next, link.child}, parent);
    shipped.push_back({link.child, to_text(file)});
  }
  return shipped;
}

}  // namespace narad::moves

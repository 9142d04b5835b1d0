#pragma once
// Where the owner of a parent's partition takes up the cursor of a link (CUR-3, CUR-7, CUR-9,
// CUR-10, G24): rules without a file. Whoever follows links asks them before it follows one; the
// source of a move asks them for links whose cursor was never written. Pure.
#include <optional>
#include <string>
#include <vector>

#include "internal/metastore/state.h"
#include "internal/moves/cursor_file.h"
#include "internal/wire/move_messages.h"

namespace narad::moves {

// The links of a parent by that state, in the order of their attachment.
std::vector<wire::ChildLink> links_of(const metastore::State& state, const std::string& parent);

// `links` and those of `more` that are not among them.
std::vector<wire::ChildLink> joined_links(std::vector<wire::ChildLink> links,
                                          const std::vector<wire::ChildLink>& more);

// What the files of a partition say of its links. Of one that no move brought: nothing.
struct LinkRecords {
  std::vector<FanoutCursor> cursors;       // of files that verify
  std::vector<std::string> damaged;        // names of those that do not
  std::vector<wire::ChildLink> installed;  // named by the marker
  bool marker_unreadable = false;          // there is one, and nobody knows whom it names
};

// The cursor of this very attachment; null if there is none. One of an earlier attachment says
// nothing of this one.
const FanoutCursor* cursor_of(const LinkRecords& records, const wire::ChildLink& link);

struct CursorStart {
  enum class From : std::uint8_t {
    cursor,  // goes on where it was; what went out after it was stored goes out again
    oldest,  // its position is lost: all that is retained goes out again, for less may be a gap
    tail,    // a fresh attachment: nothing from before
  };
  From from = From::tail;
  Offset next{0};
  friend bool operator==(const CursorStart&, const CursorStart&) = default;
};
// `oldest`: what the partition retains; `hwm`: its watermark now. Never past that: an offset behind
// it may be given to another record.
CursorStart cursor_start(const LinkRecords& records, const wire::ChildLink& link, Offset oldest,
                         Offset hwm);

// What a source ships: `shipped`, and a cursor for each link that has none of its own, where it
// would start at the source now (G24). So a fresh link is not taken for one whose cursor was lost,
// and one whose cursor is lost is not taken for fresh. `hwm`: of the listing.
std::vector<wire::Sidecar> with_anchors(std::vector<wire::Sidecar> shipped,
                                        const LinkRecords& records,
                                        const std::vector<wire::ChildLink>& links,
                                        Incarnation parent, Offset oldest, Offset hwm);

}  // namespace narad::moves

#pragma once
// What came of a command, as JSON: the answer to a forwarded proposal. Pure.
//
//   {"v":1,"index":17,"result":{"code":3,"text":"…","row":{"topic":{…}}}}     applied there
//   {"v":1,"error":"unavailable","text":"…"}                                   not, or not known
#include "internal/metastore/command.h"

namespace narad::metastore {

// A proposal that was applied.
struct Applied {
  RaftIndex index{0};
  CommandResult result;
};

std::string encode_outcome(const Result<Applied>& outcome);
// Whatever cannot be understood may have been applied: unknown_outcome.
Result<Applied> decode_outcome(std::string_view text);

}  // namespace narad::metastore

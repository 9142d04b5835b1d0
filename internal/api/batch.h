#pragma once
// Bodies of `produce:batch` (decisions.md, "batch"). Pure; any bytes give a batch or an error that
// names the first bad record, counted from 1.
//
//   application/vnd.narad.batch   "NRB1", u32 count, then per record u32 key length, u32 value
//                                 length, key, value; little-endian; nothing after the last
//   application/x-ndjson          one object a line: {"key":…,"value":…} or {"key":…,
//                                 "value_base64":…}. A string value is a message of that text; any
//                                 other JSON value is a message of its text, byte for byte. Blank
//                                 lines are skipped.
//
// An empty or missing key means that the server makes one.
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/result.h"

namespace narad::api {

struct BatchRecord {
  std::string key;
  std::string value;  // 1 to kMessageBytesMax bytes
};

// Errors: invalid_argument (malformed, an empty batch or value, a key over kKeyBytesMax or not
// UTF-8, more than kBatchRecordsMax records) or too_large (a value over kMessageBytesMax).
Result<std::vector<BatchRecord>> parse_binary_batch(std::string_view body);
Result<std::vector<BatchRecord>> parse_ndjson_batch(std::string_view body);

}  // namespace narad::api

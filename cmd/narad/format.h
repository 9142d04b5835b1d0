#pragma once
// How messages and durations look on a terminal. Pure.
#include <chrono>
#include <string>
#include <string_view>

#include "pkg/client/types.h"

namespace narad::cli {

// Padded with spaces to `width` columns, on the right or (for numbers) on the left; longer text
// stays whole.
std::string left(std::string_view text, std::size_t width);
std::string right(std::string_view text, std::size_t width);

// One message as `sub` and `replay` print it, newline included:
//   [p2 @17] key=customer-42 10:31:05.000 {"id":1}
// `utc_offset_s` is added to the time shown. `for_terminal`: control characters are escaped.
std::string message_line(const client::Received& message, std::int64_t utc_offset_s,
                         bool for_terminal = false);
// The payload alone, as release 2.x prints it: JSON as it is, other text as a JSON string, bytes.
std::string raw_line(const client::Received& message, bool for_terminal = false);

// `text` as a terminal may have it: control characters, which could move the cursor, change colours
// or worse, are shown as \xHH (\u00HH for those of Unicode). Line feeds and tabs stay if
// `keep_lines`. Bytes that are not UTF-8 are control characters too.
std::string printable(std::string_view text, bool keep_lines);

// Sixteen bytes a line: offset, hex, printable characters.
std::string hex_dump(std::string_view bytes);

// "1.234s", "2m3.5s": at most milliseconds (microseconds below one millisecond).
std::string short_duration(std::chrono::nanoseconds d);
// Of a count over a time, without fraction; "0" for no time.
std::string rate_text(std::uint64_t count, std::chrono::nanoseconds d);
// "512B", "1.5KiB".
std::string short_bytes(std::uint64_t bytes);

// Seconds east of Greenwich for local time now.
std::int64_t local_utc_offset_s();

}  // namespace narad::cli

#include "internal/model/receipt.h"

#include <algorithm>
#include <array>
#include <limits>

#include "pkg/base/text.h"

namespace narad {

std::string to_string(const ReceiptHandle& handle) {
  return cat(handle.partition, ":", handle.offset, ":", handle.nonce);
}

Result<ReceiptHandle> parse_receipt_handle(std::string_view text) {
  const Error malformed(Errc::invalid_argument, "invalid receipt handle");
  std::array<std::uint64_t, 3> fields{};
  std::string_view rest = text;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const bool last = i + 1 == fields.size();
    const std::size_t end = last ? rest.size() : rest.find(':');
    if (end == std::string_view::npos) return malformed;
    const std::string_view field = rest.substr(0, end);
    // from_chars refuses signs for unsigned types, and anything else that is not a digit.
    auto number = parse_number<std::uint64_t>(field);
    if (!number || *number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return malformed;
    }
    fields[i] = *number;
    if (!last) rest.remove_prefix(end + 1);
  }
  if (fields[2] == 0) return malformed;
  const std::uint64_t largest = std::numeric_limits<std::uint32_t>::max();
  return ReceiptHandle{PartitionId(static_cast<std::uint32_t>(std::min(fields[0], largest))),
                       Offset(fields[1]), fields[2]};
}

}  // namespace narad

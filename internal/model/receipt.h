#pragma once
// The receipt handle of one lease: what a client sends back to ack, extend or nack (http-api 2.5).
// Pure.
#include <string>
#include <string_view>

#include "internal/model/names.h"

namespace narad {

struct ReceiptHandle {
  PartitionId partition{0};
  Offset offset{0};
  std::uint64_t nonce = 0;
  friend bool operator==(const ReceiptHandle&, const ReceiptHandle&) = default;
};

// "2:0:17".
std::string to_string(const ReceiptHandle& handle);

// Exactly three fields of decimal digits that fit 63 bits, the last at least 1; invalid_argument
// otherwise. A partition number over 32 bits is well-formed and becomes the largest PartitionId,
// which no topic has: the answer to it is `gone`, not `invalid_argument`.
Result<ReceiptHandle> parse_receipt_handle(std::string_view text);

enum class SettleMode : std::uint8_t { ack, extend, nack };

}  // namespace narad

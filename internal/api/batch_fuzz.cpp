// Any bytes as a binary batch: an error, or records within their limits that encode to the same
// bytes.
#include "internal/api/batch.h"
#include "internal/api/options.h"
#include "pkg/base/assert.h"
#include "pkg/base/bytes.h"

namespace {

std::string encode(const std::vector<narad::api::BatchRecord>& records) {
  narad::Bytes out = narad::to_bytes("NRB1");
  narad::ByteWriter w(out);
  w.u32(static_cast<std::uint32_t>(records.size()));
  for (const auto& r : records) {
    w.u32(static_cast<std::uint32_t>(r.key.size()));
    w.u32(static_cast<std::uint32_t>(r.value.size()));
    w.bytes(narad::as_bytes(r.key));
    w.bytes(narad::as_bytes(r.value));
  }
  return narad::to_text(out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto records = narad::api::parse_binary_batch(body);
  if (!records) {
    NARAD_ASSERT(!records.error().text().empty());
    return 0;
  }
  NARAD_ASSERT(!records.value().empty());
  NARAD_ASSERT(records.value().size() <= narad::api::kBatchRecordsMax);
  for (const auto& r : records.value()) {
    NARAD_ASSERT(!r.value.empty() && r.value.size() <= narad::api::kMessageBytesMax);
    NARAD_ASSERT(r.key.size() <= narad::api::kKeyBytesMax);
  }
  NARAD_ASSERT(encode(records.value()) == body);
  return 0;
}

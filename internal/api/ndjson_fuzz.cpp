// Any bytes as lines of a batch: an error, or records within their limits; what they hold survives
// being written as base64 lines and read again. The payload rule of consume takes each of them.
#include "internal/api/batch.h"
#include "internal/api/message_json.h"
#include "internal/api/options.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/json/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto records = narad::api::parse_ndjson_batch(body);
  if (!records) {
    NARAD_ASSERT(!records.error().text().empty());
    return 0;
  }
  std::string again;
  for (const auto& r : records.value()) {
    NARAD_ASSERT(!r.value.empty() && r.value.size() <= narad::api::kMessageBytesMax);
    again += "{\"key\":";
    narad::append_json_string(again, r.key);
    again += ",\"value_base64\":\"" + narad::to_base64(narad::as_bytes(r.value)) + "\"}\n";

    narad::StoredRecord stored;
    stored.key = r.key;
    stored.payload = r.value;
    for (bool base64 : {false, true}) {
      std::string line;
      narad::api::append_message(line, "t", narad::PartitionId(0), stored, nullptr, {base64, true});
      NARAD_ASSERT(narad::json::is_payload(line), line);
      NARAD_ASSERT(line.find('\n') == std::string::npos, line);
    }
  }
  const auto back = narad::api::parse_ndjson_batch(again);
  NARAD_ASSERT(back.has_value(), back.has_value() ? "" : back.error().text());
  NARAD_ASSERT(back.value().size() == records.value().size());
  for (std::size_t i = 0; i < back.value().size(); ++i) {
    NARAD_ASSERT(back.value()[i].key == records.value()[i].key);
    NARAD_ASSERT(back.value()[i].value == records.value()[i].value);
  }
  return 0;
}

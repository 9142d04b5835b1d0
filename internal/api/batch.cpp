#include "internal/api/batch.h"

#include <optional>

#include "internal/api/options.h"
#include "pkg/base/bytes.h"
#include "pkg/base/text.h"
#include "pkg/json/document.h"
#include "pkg/json/text.h"

namespace narad::api {
namespace {

constexpr std::string_view kMagic = "NRB1";
constexpr std::size_t kRecordBytesMin = 4 + 4 + 1;

Error bad(std::string text) { return Error(Errc::invalid_argument, std::move(text)); }
Error bad_record(std::size_t number, std::string_view why) {
  return bad(cat("record ", number, ": ", why));
}

// The rules that hold for a record however it was written.
Result<void> check_record(std::size_t number, const BatchRecord& record) {
  if (record.key.size() > kKeyBytesMax) {
    return bad_record(number, cat("key over ", kKeyBytesMax, " bytes"));
  }
  if (!is_utf8(record.key)) return bad_record(number, "key is not valid UTF-8");
  if (record.value.empty()) return bad_record(number, "message required");
  if (record.value.size() > kMessageBytesMax) {
    return Error(Errc::too_large,
                 cat("record ", number, ": message over ", kMessageBytesMax, " bytes"));
  }
  return ok();
}

Error too_many() { return bad(cat("a batch has at most ", kBatchRecordsMax, " records")); }
Error none() { return bad("a batch has at least one record"); }

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char c = a[i] >= 'A' && a[i] <= 'Z' ? static_cast<char>(a[i] - 'A' + 'a') : a[i];
    if (c != b[i]) return false;
  }
  return true;
}

Result<BatchRecord> parse_line(std::size_t number, std::string_view line) {
  auto document = json::Document::parse(std::string(line), json::kPayloadDepthMax);
  if (!document) return bad_record(number, cat("invalid json: ", document.error().text()));
  const json::Value object = document.value().root();
  if (!object.is(json::Kind::object)) return bad_record(number, "invalid json: expected an object");
  std::optional<json::Value> key, value, value_base64;
  for (std::size_t i = 0; i < object.size(); ++i) {
    const json::Member m = object.member(i);
    if (same_name(m.name, "key")) {
      key = m.value;
    } else if (same_name(m.name, "value")) {
      value = m.value;
    } else if (same_name(m.name, "value_base64")) {
      value_base64 = m.value;
    } else {
      return bad_record(number, cat("invalid json: unknown field ", json::quote(m.name)));
    }
  }
  BatchRecord record;
  if (key && !key->is(json::Kind::null)) {
    if (!key->is(json::Kind::string)) return bad_record(number, "key is not a string");
    record.key = key->as_string();
  }
  if (value.has_value() == value_base64.has_value()) {
    return bad_record(number, "give either value or value_base64");
  }
  if (value) {
    record.value = value->is(json::Kind::string) ? value->as_string() : value->raw();
    return record;
  }
  std::optional<Bytes> bytes;
  if (value_base64->is(json::Kind::string)) bytes = parse_base64(value_base64->as_string());
  if (!bytes) return bad_record(number, "value_base64 is not a string of padded base64");
  record.value = as_chars(*bytes);
  return record;
}

}  // namespace

Result<std::vector<BatchRecord>> parse_binary_batch(std::string_view body) {
  if (!body.starts_with(kMagic)) return bad("not a batch: it must begin with NRB1");
  ByteReader reader(as_bytes(body.substr(kMagic.size())));
  const std::uint32_t count = reader.u32();
  if (!reader.ok()) return bad("not a batch: the record count is missing");
  if (count == 0) return none();
  if (count > kBatchRecordsMax) return too_many();
  std::vector<BatchRecord> records;
  // Never more than the bytes at hand can hold.
  records.reserve(std::min<std::size_t>(count, reader.remaining() / kRecordBytesMin));
  for (std::size_t number = 1; number <= count; ++number) {
    const std::uint32_t key_bytes = reader.u32();
    const std::uint32_t value_bytes = reader.u32();
    const ByteView key = reader.bytes(key_bytes);
    const ByteView value = reader.bytes(value_bytes);
    if (!reader.ok()) return bad_record(number, "the body ends within it");
    BatchRecord record{to_text(key), to_text(value)};
    NARAD_TRY(check_record(number, record));
    records.push_back(std::move(record));
  }
  if (reader.remaining() != 0) {
    return bad(cat(reader.remaining(), " bytes follow the last record"));
  }
  return records;
}

Result<std::vector<BatchRecord>> parse_ndjson_batch(std::string_view body) {
  std::vector<BatchRecord> records;
  while (!body.empty()) {
    const std::size_t end = std::min(body.find('\n'), body.size());
    const std::string_view line = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::size_t number = records.size() + 1;
    if (number > kBatchRecordsMax) return too_many();
    NARAD_TRY(BatchRecord record, parse_line(number, line));
    NARAD_TRY(check_record(number, record));
    records.push_back(std::move(record));
  }
  if (records.empty()) return none();
  return records;
}

}  // namespace narad::api

#include "internal/api/message_json.h"

#include <array>
#include <charconv>

#include "pkg/base/text.h"
#include "pkg/json/text.h"

namespace narad::api {
namespace {

template <class T>
void append_number(std::string& out, T value) {
  std::array<char, 24> digits;
  auto [end, ec] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), end);
}

std::int64_t floor_to_seconds(UnixMillis time) {
  const std::int64_t ms = time.value();
  return ms / 1000 - (ms % 1000 < 0 ? 1 : 0);
}

void append_base64(std::string& out, std::string_view payload) {
  out += '"';
  out += to_base64(as_bytes(payload));
  out += R"(","payload_encoding":"base64")";
}

void append_payload(std::string& out, std::string_view payload, MessageFormat format) {
  if (format.base64 || (format.lines && payload.find_first_of("\r\n") != std::string_view::npos)) {
    append_base64(out, payload);
  } else if (payload.empty()) {
    out += "null";
  } else if (json::is_payload(payload)) {
    out += payload;
  } else if (is_utf8(payload)) {
    append_json_string(out, payload);
  } else {
    append_base64(out, payload);
  }
}

}  // namespace

void append_message(std::string& out, std::string_view topic, PartitionId partition,
                    const StoredRecord& record, const ReceiptHandle* handle, MessageFormat format) {
  // A topic name needs no escaping (http-api 2.1).
  out += R"({"topic":")";
  out += topic;
  out += R"(","partition":)";
  append_number(out, partition.value());
  out += R"(,"offset":)";
  append_number(out, record.offset.value());
  if (!record.key.empty()) {
    out += R"(,"key":)";
    append_json_string(out, record.key);
  }
  out += R"(,"payload":)";
  append_payload(out, record.payload, format);
  out += R"(,"timestamp":)";
  append_number(out, floor_to_seconds(record.commit_time));
  if (handle != nullptr) {
    out += R"(,"receipt_handle":")";
    append_number(out, handle->partition.value());
    out += ':';
    append_number(out, handle->offset.value());
    out += ':';
    append_number(out, handle->nonce);
    out += '"';
  }
  out += '}';
}

}  // namespace narad::api

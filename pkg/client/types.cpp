#include "pkg/client/types.h"

#include "pkg/base/text.h"
#include "pkg/json/document.h"
#include "pkg/json/text.h"
#include "pkg/json/writer.h"

namespace narad::client {
namespace {

constexpr std::size_t kAnswerDepthMax = 1'100;  // a payload may nest 1,000 deep

Error malformed(std::string_view what) {
  return {Errc::data_loss, cat("the server's answer is malformed: ", std::string(what))};
}

Result<json::Document> parse(std::string text) {
  auto document = json::Document::parse(std::move(text), kAnswerDepthMax);
  if (!document) return malformed(document.error().text());
  return std::move(document).value();
}

// Reads members of one object; a member of the wrong type counts as malformed.
class Reader {
 public:
  explicit Reader(json::Value object) : object_(object) {
    if (!object.is(json::Kind::object)) fail("expected an object");
  }
  Reader& text(std::string_view name, std::string& out) {
    if (auto v = member(name, json::Kind::string)) out = v->as_string();
    return *this;
  }
  template <class T>
  Reader& number(std::string_view name, T& out) {
    auto v = member(name, json::Kind::number);
    if (!v) return *this;
    auto n = v->as_int64();
    if (!n) {
      fail(cat(std::string(name), " is no integer"));
    } else {
      out = T(static_cast<decltype(plain(out))>(*n));
    }
    return *this;
  }
  Reader& flag(std::string_view name, bool& out) {
    if (auto v = member(name, json::Kind::boolean)) out = v->as_bool();
    return *this;
  }
  std::optional<json::Value> member(std::string_view name, json::Kind kind) {
    if (error_) return std::nullopt;
    auto v = object_.find(name);
    if (!v || v->is(json::Kind::null)) return std::nullopt;
    if (!v->is(kind)) {
      fail(cat(std::string(name), " is ", std::string(json::describe(v->kind()))));
      return std::nullopt;
    }
    return v;
  }
  void fail(std::string_view what) {
    if (!error_) error_ = malformed(what);
  }
  Result<void> finish() {
    if (error_) return *error_;
    return ok();
  }

 private:
  template <class T>
  static auto plain(const T& v) {
    if constexpr (requires { v.value(); }) {
      return v.value();
    } else {
      return v;
    }
  }
  json::Value object_;
  std::optional<Error> error_;
};

Result<PartitionStats> read_stats(json::Value value) {
  PartitionStats s;
  Reader r(value);
  r.number("index", s.index).number("segments", s.segments);
  r.number("oldest_offset", s.oldest_offset).number("next_offset", s.next_offset);
  r.number("high_watermark", s.high_watermark).number("size_bytes", s.size_bytes);
  r.number("oldest_segment_at", s.oldest_segment_at_s).text("owner_node", s.owner_node);
  NARAD_TRY(r.finish());
  return s;
}

Result<TopicInfo> read_topic(json::Value value) {
  TopicInfo t;
  Reader r(value);
  r.text("name", t.name).number("partitions", t.partitions);
  r.number("retention_ms", t.retention_ms);
  r.number("visibility_timeout_ms", t.visibility_timeout_ms);
  r.number("max_in_flight_per_partition", t.max_in_flight_per_partition);
  r.number("max_acked_ahead_per_partition", t.max_acked_ahead_per_partition);
  r.number("created_at", t.created_at_s).text("owner", t.owner).text("role", t.role);
  r.text("parent", t.parent).number("fanout_delay_ms", t.fanout_delay_ms);
  auto children = r.member("children", json::Kind::array);
  for (std::size_t i = 0; children && i < children->size(); ++i) {
    json::Value child = children->element(i);
    if (child.is(json::Kind::string)) t.children.emplace_back(child.as_string());
  }
  auto stats = r.member("partition_stats", json::Kind::array);
  NARAD_TRY(r.finish());
  for (std::size_t i = 0; stats && i < stats->size(); ++i) {
    NARAD_TRY(auto s, read_stats(stats->element(i)));
    t.stats.push_back(std::move(s));
  }
  return t;
}

// The bytes that were produced. With encoding=base64 that is always a base64 string; a server that
// does not know the parameter answers JSON, a string or base64, in which case JSON text and strings
// cannot be told apart and the JSON text is taken as it stands.
Result<std::string> read_payload(json::Value payload, std::string_view encoding) {
  if (encoding == "base64") {
    if (!payload.is(json::Kind::string)) return malformed("payload is no base64 string");
    auto bytes = parse_base64(payload.as_string());
    if (!bytes) return malformed("payload is no base64");
    return to_text(*bytes);
  }
  if (payload.is(json::Kind::string)) return std::string(payload.as_string());
  return std::string(payload.raw());
}

Result<Received> read_received(json::Value value) {
  Received m;
  std::string encoding;
  Reader r(value);
  r.text("topic", m.topic).number("partition", m.partition).number("offset", m.offset);
  r.text("key", m.key).text("payload_encoding", encoding).number("timestamp", m.timestamp_s);
  r.text("receipt_handle", m.receipt_handle);
  NARAD_TRY(r.finish());
  auto payload = value.find("payload");
  if (!payload) return malformed("a message without payload");
  NARAD_TRY(m.payload, read_payload(*payload, encoding));
  return m;
}

void put_u32(std::string& out, std::size_t n) {
  std::byte bytes[4];
  store_le(bytes, static_cast<std::uint32_t>(n));
  out += as_chars(bytes);
}

}  // namespace

std::string_view to_string(AckMode mode) {
  switch (mode) {
    case AckMode::ack:
      return "ack";
    case AckMode::extend:
      return "extend";
    case AckMode::nack:
      return "nack";
  }
  return "ack";
}

std::string encode_batch(const std::vector<BatchRecord>& records) {
  std::size_t size = 8;
  for (const BatchRecord& r : records) size += 8 + r.key.size() + r.value.size();
  std::string out;
  out.reserve(size);
  out += "NRB1";
  put_u32(out, records.size());
  for (const BatchRecord& r : records) {
    put_u32(out, r.key.size());
    put_u32(out, r.value.size());
    out += r.key;
    out += r.value;
  }
  return out;
}

std::string encode_new_topic(const NewTopic& topic) {
  json::Writer w;
  w.begin_object().member("name", topic.name);
  if (topic.partitions != 0) w.member("partitions", topic.partitions);
  if (topic.retention_ms != 0) w.member("retention_ms", topic.retention_ms);
  if (topic.visibility_timeout_ms != 0) {
    w.member("visibility_timeout_ms", topic.visibility_timeout_ms);
  }
  if (topic.max_in_flight_per_partition != 0) {
    w.member("max_in_flight_per_partition", topic.max_in_flight_per_partition);
  }
  if (topic.max_acked_ahead_per_partition != 0) {
    w.member("max_acked_ahead_per_partition", topic.max_acked_ahead_per_partition);
  }
  if (!topic.schema.empty()) w.key("schema").raw(topic.schema);
  if (!topic.parent.empty()) w.member("parent", topic.parent);
  if (topic.fanout_delay_ms != 0) w.member("fanout_delay_ms", topic.fanout_delay_ms);
  w.end_object();
  return w.take();
}

std::string encode_topic_change(const TopicChange& change) {
  json::Writer w;
  w.begin_object();
  if (change.partitions != 0) w.member("partitions", change.partitions);
  if (change.retention_ms != 0) w.member("retention_ms", change.retention_ms);
  if (change.visibility_timeout_ms != 0) {
    w.member("visibility_timeout_ms", change.visibility_timeout_ms);
  }
  if (change.max_in_flight_per_partition != 0) {
    w.member("max_in_flight_per_partition", change.max_in_flight_per_partition);
  }
  if (change.max_acked_ahead_per_partition != 0) {
    w.member("max_acked_ahead_per_partition", change.max_acked_ahead_per_partition);
  }
  if (!change.schema.empty()) w.key("schema").raw(change.schema);
  w.end_object();
  return w.take();
}

Result<TopicInfo> decode_topic(std::string text) {
  NARAD_TRY(auto document, parse(std::move(text)));
  return read_topic(document.root());
}

Result<TopicPage> decode_topic_page(std::string text) {
  NARAD_TRY(auto document, parse(std::move(text)));
  TopicPage page;
  Reader r(document.root());
  r.text("next_page_token", page.next_page_token);
  auto topics = r.member("topics", json::Kind::array);
  NARAD_TRY(r.finish());
  for (std::size_t i = 0; topics && i < topics->size(); ++i) {
    NARAD_TRY(auto topic, read_topic(topics->element(i)));
    page.topics.push_back(std::move(topic));
  }
  return page;
}

Result<Received> decode_received(std::string text) {
  NARAD_TRY(auto document, parse(std::move(text)));
  return read_received(document.root());
}

Result<std::vector<Received>> decode_received_list(std::string text) {
  NARAD_TRY(auto document, parse(std::move(text)));
  if (!document.root().is(json::Kind::array)) return malformed("expected an array of messages");
  std::vector<Received> messages;
  messages.reserve(document.root().size());
  for (std::size_t i = 0; i < document.root().size(); ++i) {
    NARAD_TRY(auto m, read_received(document.root().element(i)));
    messages.push_back(std::move(m));
  }
  return messages;
}

Result<std::vector<AckResult>> decode_ack_results(std::string text) {
  NARAD_TRY(auto document, parse(std::move(text)));
  Reader r(document.root());
  auto list = r.member("results", json::Kind::array);
  NARAD_TRY(r.finish());
  std::vector<AckResult> results;
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    AckResult result;
    Reader item(list->element(i));
    item.text("handle", result.handle).number("status", result.status);
    NARAD_TRY(item.finish());
    results.push_back(std::move(result));
  }
  return results;
}

Result<std::vector<MemberInfo>> decode_members(std::string text) {
  NARAD_TRY(auto document, parse(std::move(text)));
  Reader r(document.root());
  auto list = r.member("members", json::Kind::array);
  NARAD_TRY(r.finish());
  std::vector<MemberInfo> members;
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    MemberInfo m;
    Reader item(list->element(i));
    item.text("id", m.id).text("addr", m.addr).text("status", m.status);
    item.flag("draining", m.draining).number("owned_partitions", m.owned_partitions);
    item.number("outbound_moves", m.outbound_moves);
    NARAD_TRY(item.finish());
    members.push_back(std::move(m));
  }
  return members;
}

std::string error_text(std::string_view body) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::size_t first = body.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "<empty body>";
  body = body.substr(first, body.find_last_not_of(kSpace) - first + 1);
  auto document = json::Document::parse(std::string(body), kAnswerDepthMax);
  if (document && document.value().root().is(json::Kind::object)) {
    auto error = document.value().root().find("error");
    if (error && error->is(json::Kind::string) && !error->as_string().empty()) {
      return std::string(error->as_string());
    }
  }
  return std::string(body);
}

}  // namespace narad::client

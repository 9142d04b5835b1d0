#include "internal/metastore/outcome.h"

#include "internal/metastore/codec.h"
#include "pkg/base/text.h"
#include "pkg/json/document.h"
#include "pkg/json/writer.h"

namespace narad::metastore {
namespace {

// The errors a proposal can end with; anything else is `internal`, which nobody resolves by trying.
constexpr Errc kErrors[] = {Errc::unavailable, Errc::unknown_outcome,
                            Errc::not_leader,  Errc::too_large,
                            Errc::busy,        Errc::internal};

struct RowWriter {
  json::Writer& w;
  void operator()(const std::monostate&) const { w.null(); }
  void operator()(const Topic& t) const { one("topic", encode_topic(t, RaftIndex(0))); }
  void operator()(const Member& m) const { one("member", encode_member(m)); }
  void operator()(const SchemaVersion& s) const { one("schema", encode_schema(s)); }
  void operator()(const User& u) const { one("user", encode_user(u)); }
  void operator()(const AssignmentRow& a) const {
    w.begin_object().member("topic_name", a.partition.topic);
    w.member("partition", a.partition.partition);
    w.key("assignment").raw(encode_assignment(a.assignment)).end_object();
  }
  void one(std::string_view kind, const std::string& doc) const {
    w.begin_object().key(kind).raw(doc).end_object();
  }
};

using Row = decltype(CommandResult::row);

Result<Row> decode_row(json::Value row) {
  if (row.is(json::Kind::null)) return Row();
  if (!row.is(json::Kind::object)) return Error(Errc::data_loss, "the row is no object");
  if (auto doc = row.find("topic")) {
    NARAD_TRY(auto decoded, decode_topic(doc->raw()));
    return Row(std::move(decoded.topic));
  }
  if (auto doc = row.find("member")) {
    NARAD_TRY(auto decoded, decode_member(doc->raw()));
    return Row(std::move(decoded));
  }
  if (auto doc = row.find("schema")) {
    NARAD_TRY(auto decoded, decode_schema(doc->raw()));
    return Row(std::move(decoded));
  }
  if (auto doc = row.find("user")) {
    NARAD_TRY(auto decoded, decode_user(doc->raw()));
    return Row(std::move(decoded));
  }
  const auto doc = row.find("assignment"), topic = row.find("topic_name"),
             partition = row.find("partition");
  if (!doc || !topic || !topic->is(json::Kind::string) || !partition ||
      !partition->is(json::Kind::number) || !partition->as_uint64() ||
      *partition->as_uint64() > 0xffffffffu) {
    return Error(Errc::data_loss, "the row is of unknown kind");
  }
  AssignmentRow out;
  out.partition.topic = std::string(topic->as_string());
  out.partition.partition = PartitionId(static_cast<std::uint32_t>(*partition->as_uint64()));
  NARAD_TRY(out.assignment, decode_assignment(doc->raw()));
  return Row(std::move(out));
}

Error not_understood(std::string_view why) {
  return Error(Errc::unknown_outcome,
               cat("the leader's answer cannot be understood (", why,
                   "); the change may have been made. Look before trying again"));
}

std::optional<std::uint64_t> number_at(json::Value object, std::string_view name) {
  const auto value = object.find(name);
  if (!value || !value->is(json::Kind::number)) return std::nullopt;
  return value->as_uint64();
}

std::optional<std::string_view> text_at(json::Value object, std::string_view name) {
  const auto value = object.find(name);
  if (!value || !value->is(json::Kind::string)) return std::nullopt;
  return value->as_string();
}

Result<Applied> decode_applied(json::Value root) {
  const auto index = number_at(root, "index");
  const auto result = root.find("result");
  if (!index || *index == 0 || !result || !result->is(json::Kind::object)) {
    return not_understood("no index or result");
  }
  const auto code = number_at(*result, "code");
  const auto text = text_at(*result, "text");
  const auto row = result->find("row");
  if (!code || *code > static_cast<std::uint64_t>(ResultCode::unsupported) || !text || !row) {
    return not_understood("an unknown result");
  }
  Applied out;
  out.index = RaftIndex(*index);
  out.result.code = static_cast<ResultCode>(*code);
  out.result.text = std::string(*text);
  auto decoded = decode_row(*row);
  if (!decoded) return not_understood(decoded.error().text());
  out.result.row = std::move(decoded.value());
  return out;
}

}  // namespace

std::string encode_outcome(const Result<Applied>& outcome) {
  json::Writer w;
  w.begin_object().member("v", 1);
  if (!outcome) {
    w.member("error", to_string(outcome.error().code())).member("text", outcome.error().text());
    w.end_object();
    return w.take();
  }
  const CommandResult& result = outcome.value().result;
  w.member("index", outcome.value().index).key("result").begin_object();
  w.member("code", static_cast<int>(result.code)).member("text", result.text).key("row");
  std::visit(RowWriter{w}, result.row);
  w.end_object().end_object();
  return w.take();
}

Result<Applied> decode_outcome(std::string_view text) {
  auto document = json::Document::parse(std::string(text), 16);
  if (!document) return not_understood(document.error().text());
  const json::Value root = document.value().root();
  if (!root.is(json::Kind::object)) return not_understood("no object");
  if (number_at(root, "v") != std::uint64_t{1}) return not_understood("another version");
  const auto name = text_at(root, "error");
  if (!name) return decode_applied(root);
  for (Errc code : kErrors) {
    if (*name == to_string(code))
      return Error(code, std::string(text_at(root, "text").value_or("")));
  }
  return not_understood(cat("error ", *name));
}

}  // namespace narad::metastore

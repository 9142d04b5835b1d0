#include "cmd/narad/view_parts.h"

#include <algorithm>

#include "cmd/narad/format.h"
#include "pkg/base/text.h"
#include "pkg/json/text.h"

namespace narad::cli {

Result<json::Document> read_object(std::string body, Error otherwise) {
  auto document = json::Document::parse(std::move(body), json::kBodyDepthMax);
  if (!document || !document.value().root().is(json::Kind::object)) return otherwise;
  return document;
}

std::optional<json::Value> Fields::find(std::string_view name, json::Kind kind) const {
  auto v = object_.find(name);
  if (v && !v->is(kind)) v.reset();
  return v;
}

std::string Fields::text(std::string_view name) const {
  const auto v = find(name, json::Kind::string);
  return v ? printable(v->as_string(), false) : std::string();
}

bool Fields::flag(std::string_view name) const {
  const auto v = find(name, json::Kind::boolean);
  return v && v->as_bool();
}

std::optional<std::uint64_t> Fields::maybe(std::string_view name) const {
  const auto v = find(name, json::Kind::number);
  const auto n = v ? v->as_int64() : std::nullopt;
  if (!n || *n < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*n);
}

std::int64_t Fields::time(std::string_view name) const {
  constexpr std::uint64_t kMax = 253'402'300'799;
  return static_cast<std::int64_t>(std::min(count(name), kMax));
}

std::vector<std::string> Fields::texts(std::string_view name) const {
  std::vector<std::string> out;
  const auto v = find(name, json::Kind::array);
  for (std::size_t i = 0; v && i < v->size(); ++i) {
    const json::Value item = v->element(i);
    if (item.is(json::Kind::string)) out.push_back(printable(item.as_string(), false));
  }
  return out;
}

std::optional<Fields> Fields::object(std::string_view name) const {
  const auto v = find(name, json::Kind::object);
  if (!v) return std::nullopt;
  return Fields(*v);
}

std::optional<std::vector<Fields>> Fields::objects(std::string_view name) const {
  const auto list = find(name, json::Kind::array);
  if (!list) return std::nullopt;
  std::vector<Fields> out;
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (list->element(i).is(json::Kind::object)) out.emplace_back(list->element(i));
  }
  return out;
}

std::vector<std::string> align(const std::vector<Column>& columns, const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::size_t width = columns[c].title.size();
    for (const Row& row : rows) width = std::max(width, row[c].size());
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell) {
    std::string out;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string text(cell(c));
      out += columns[c].number ? right(text, widths[c]) : left(text, widths[c]);
      out += "  ";
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  };
  std::vector<std::string> lines{line([&](std::size_t c) { return columns[c].title; })};
  for (const Row& row : rows) lines.push_back(line([&](std::size_t c) { return row[c]; }));
  return lines;
}

std::string together(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += cat(line, "\n");
  return out;
}

std::string time_text(std::int64_t unix_s) {
  if (unix_s == 0) return "-";
  std::string text = format_rfc3339(UnixMillis(unix_s * 1000));
  if (text.ends_with(".000Z")) text.replace(text.size() - 5, 5, "Z");
  return text;
}

}  // namespace narad::cli

#pragma once
// What the pure views of answers share: reading an object without trusting it, and aligned tables.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/result.h"
#include "pkg/json/document.h"

namespace narad::cli {

// The object that `body` is; `otherwise` if it is anything else.
Result<json::Document> read_object(std::string body, Error otherwise);

// What an object says, or the value that nothing means. Texts are made fit for one line.
class Fields {
 public:
  explicit Fields(json::Value object) : object_(object) {}
  std::string text(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::optional<std::uint64_t> maybe(std::string_view name) const;
  std::uint64_t count(std::string_view name) const { return maybe(name).value_or(0); }
  std::int64_t time(std::string_view name) const;  // Unix seconds, at most of the year 9999
  std::vector<std::string> texts(std::string_view name) const;
  std::optional<Fields> object(std::string_view name) const;
  // The objects of a list, others left out; nothing if there is no list.
  std::optional<std::vector<Fields>> objects(std::string_view name) const;

 private:
  std::optional<json::Value> find(std::string_view name, json::Kind kind) const;
  json::Value object_;
};

struct Column {
  std::string_view title;
  bool number = false;
};
using Row = std::vector<std::string>;

// The heading and the rows, aligned; the last column is as wide as it likes.
std::vector<std::string> align(const std::vector<Column>& columns, const std::vector<Row>& rows);
// With an end to each line.
std::string together(const std::vector<std::string>& lines);

// "2026-07-09T16:36:40Z"; "-" for 0.
std::string time_text(std::int64_t unix_s);

}  // namespace narad::cli

#pragma once
// Request bodies of the API (http-api 1.0): exactly one value; unknown fields refused; names match
// without regard to ASCII case; of duplicates the last wins; integers strict (no fraction, no
// exponent, no quotes, in range); null leaves a field as it is (an optional becomes empty), and a
// null body leaves all of them.
//
//   NARAD_TRY(auto body, json::parse_body(std::move(text)));
//   CreateTopic out;
//   json::Decoder d(body.root());
//   d.field("name", out.name).field("partitions", out.partitions).raw("schema", out.schema);
//   d.each("grants", [&](json::Value v) { return decode_grant(v, out.grants.emplace_back()); });
//   NARAD_TRY(d.finish());   // invalid_argument, "invalid json: …"; nothing of `out` counts then
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/json/document.h"

namespace narad::json {

// One value of depth at most kBodyDepthMax. Errors begin with "invalid json: ".
Result<Document> parse_body(std::string text);

class Decoder {
 public:
  // `where` names the object in errors of nested ones ("grants[0]"); empty for the body itself.
  explicit Decoder(Value object, std::string where = {});

  Decoder& field(std::string_view name, std::string& out);
  Decoder& field(std::string_view name, bool& out);
  Decoder& field(std::string_view name, std::vector<std::string>& out);  // null element: ""
  template <std::integral T>
  Decoder& field(std::string_view name, T& out) {
    std::int64_t wide = static_cast<std::int64_t>(out);
    integer(name, wide, lowest<T>(), highest<T>());
    out = static_cast<T>(wide);
    return *this;
  }
  // Empty if absent or null.
  template <class T>
  Decoder& field(std::string_view name, std::optional<T>& out) {
    out.reset();
    const std::optional<Value> last = claim(name);
    if (!last || last->is(Kind::null)) return *this;
    field(name, out.emplace());
    return *this;
  }
  // The text of the value as it stands, "null" included; empty if absent.
  Decoder& raw(std::string_view name, std::optional<std::string>& out);
  // Calls `item` for each element of an array (absent or null: none). Its error is kept, with the
  // place in front.
  Decoder& each(std::string_view name, const std::function<Result<void>(Value)>& item);
  // Calls `item` with the value unless absent or null.
  Decoder& object(std::string_view name, const std::function<Result<void>(Value)>& item);

  // The first problem met, then the first unknown field; invalid_argument, "invalid json: …".
  Result<void> finish();

 private:
  template <class T>
  static constexpr std::int64_t lowest() {
    return std::is_unsigned_v<T> ? 0 : static_cast<std::int64_t>(std::numeric_limits<T>::min());
  }
  template <class T>
  static constexpr std::int64_t highest() {
    constexpr auto cap = std::numeric_limits<std::int64_t>::max();
    return std::cmp_greater(std::numeric_limits<T>::max(), cap)
               ? cap
               : static_cast<std::int64_t>(std::numeric_limits<T>::max());
  }
  void integer(std::string_view name, std::int64_t& out, std::int64_t low, std::int64_t high);
  // Marks every member of that name as known; answers the last one.
  std::optional<Value> claim(std::string_view name);
  // Calls `take` for each member of that name that is not null, in order.
  void each_value(std::string_view name, Kind wanted, const std::function<void(Value)>& take);
  void fail(std::string_view name, std::string_view problem);
  std::string path(std::string_view name) const;

  Value object_;
  std::string where_;
  std::vector<bool> known_;
  std::optional<Error> error_;
};

}  // namespace narad::json

// Any query: reading it never fails in another way than the documented ones, and what encode writes
// decode reads back.
#include <cstdint>
#include <cstdlib>

#include "pkg/http/query.h"
#include "pkg/http/router.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad::http;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto check = [](bool holds) {
    if (!holds) std::abort();
  };

  const std::string encoded = encode_component(text);
  check(decode_query(encoded) == text);
  check(decode_path(encoded) == text);

  const Query query(text);
  for (const std::string_view name : {"key", "partition", ""}) {
    const auto value = query.get(name);
    const bool absent = value && !value.value();
    check(absent == (query.count(name) == 0));
    if (value && value.value()) check(query.first(name) == *value.value());
    if (!value) check(value.error().code() == narad::Errc::invalid_argument);
  }
  if (query.has_bad_name()) check(text.find('%') != std::string_view::npos);

  const std::string clean = clean_path(text);
  check(clean.starts_with('/'));
  check(clean.find("//") == std::string::npos);
  check(clean_path(clean) == clean);

  static const Router router = [] {
    Router r;
    r.add("GET /v1/topics", 1);
    r.add("GET /v1/topics/{topic}", 2);
    r.add("POST /v1/topics/{topic}/produce", 3);
    r.add("POST /v1/topics/{topic}/produce:batch", 4);
    return r;
  }();
  const auto match = router.match(Method::get, text);
  if (match) {
    check(match.route->method == Method::get);
    if (match.route->id == 2) check(!match.param("topic").empty());
  }
  return 0;
}

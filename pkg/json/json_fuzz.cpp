// Any bytes: what check() accepts must parse, its tree must agree with Boost's own, and the
// formatters must give valid JSON of the same value.
#include <boost/json/parse.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "pkg/json/decode.h"
#include "pkg/json/document.h"
#include "pkg/json/text.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// Recursion is bounded by the depth of the parse (64).
void same(const narad::json::Value& ours, const boost::json::value& theirs) {
  using narad::json::Kind;
  switch (ours.kind()) {
    case Kind::null:
      return require(theirs.is_null());
    case Kind::boolean:
      return require(theirs.is_bool() && theirs.get_bool() == ours.as_bool());
    case Kind::number: {
      require(theirs.is_number());
      const auto d = ours.as_double();
      if (theirs.is_int64()) require(ours.as_int64() == theirs.get_int64());
      if (theirs.is_uint64()) require(ours.as_uint64() == theirs.get_uint64());
      // What Boost takes for infinite does not fit; else both are within a few units in the last
      // place.
      if (d && theirs.is_double() && std::isfinite(theirs.get_double()))
        require(std::abs(*d - theirs.get_double()) <= std::abs(*d) * 1e-14);
      return;
    }
    case Kind::string: {
      require(theirs.is_string());
      const auto& s = theirs.get_string();
      return require(std::string_view(s.data(), s.size()) == ours.as_string());
    }
    case Kind::array:
      require(theirs.is_array() && theirs.get_array().size() == ours.size());
      for (std::size_t i = 0; i < ours.size(); ++i) same(ours.element(i), theirs.get_array()[i]);
      return;
    case Kind::object:
      require(theirs.is_object() && theirs.get_object().size() == ours.unique_size());
      for (std::size_t i = 0; i < ours.unique_size(); ++i) {
        const auto m = ours.unique_member(i);
        require(ours.unique_name(i).as_string() == m.name);
        const auto* v = theirs.get_object().if_contains({m.name.data(), m.name.size()});
        require(v != nullptr);
        same(ours.find(m.name).value(), *v);
      }
      return;
  }
}

void decode(const narad::json::Value& root) {
  namespace nj = narad::json;
  std::int64_t n = 0;
  std::int32_t small = 0;
  std::string s;
  bool b = false;
  std::vector<std::string> names;
  std::optional<std::string> raw;
  std::size_t inner = 0;
  const auto item = [&](nj::Value v) -> narad::Result<void> {
    ++inner;
    std::string deep;
    return nj::Decoder(v, "item").field("s", deep).finish();
  };
  nj::Decoder decoder(root);
  decoder.field("n", n).field("i", small).field("s", s).field("b", b).field("names", names);
  decoder.raw("raw", raw).each("list", item).object("o", item);
  auto finished = decoder.finish();
  if (!finished) require(finished.error().text().starts_with("invalid json: "));
}

// Recursion is bounded as above.
void point_into(const narad::json::Value& root, const narad::json::Value& at) {
  require(at.id() == 0 || !narad::json::pointer_to(root, at.id()).empty());
  require(!narad::json::describe(at.kind()).empty());
  for (std::size_t i = 0;
       i < std::min<std::size_t>(at.is(narad::json::Kind::array) ? at.size() : 0, 3); ++i)
    point_into(root, at.element(i));
  for (std::size_t i = 0;
       i < std::min<std::size_t>(at.is(narad::json::Kind::object) ? at.size() : 0, 3); ++i)
    point_into(root, at.member(i).value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace nj = narad::json;
  const std::string text(reinterpret_cast<const char*>(data), size);
  require(nj::Document::parse(nj::quote(text), 1).has_value());
  auto document = nj::Document::parse(text, nj::kBodyDepthMax);
  require(document.has_value() == nj::check(text, nj::kBodyDepthMax).has_value());
  if (!document) return 0;
  boost::json::parse_options options;
  options.max_depth = nj::kBodyDepthMax;
  boost::system::error_code ec;
  const auto theirs = boost::json::parse({text.data(), text.size()}, ec, {}, options);
  require(!ec);
  same(document.value().root(), theirs);
  const std::string pretty = nj::pretty(text).value();
  require(nj::compact(pretty) == nj::compact(text));
  auto body = nj::parse_body(text);
  require(body.has_value());
  require(document.value().text() == text);
  decode(body.value().root());
  point_into(document.value().root(), document.value().root());
  return 0;
}

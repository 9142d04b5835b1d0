// Any bytes: what check() accepts must parse, its tree must agree with Boost's own, and the
// formatters must give valid JSON of the same value.
#include <boost/json/parse.hpp>
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
    case Kind::number:
      return require(theirs.is_number());
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
        const auto* v = theirs.get_object().if_contains({m.name.data(), m.name.size()});
        require(v != nullptr);
        same(ours.find(m.name).value(), *v);
      }
      return;
  }
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
  std::int64_t n = 0;
  std::string s;
  (void)nj::Decoder(body.value().root()).field("n", n).field("s", s).finish();
  return 0;
}

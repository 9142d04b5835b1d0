#pragma once
// One list of fields per value, for writing it as a JSON object and for reading it back: a function
// `describe(value, f)` names every field once, in the order of the text. Private to this directory.
//
// Reading is strict: every field but an optional one must be there, and no other may be.
#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "internal/model/user.h"
#include "pkg/base/text.h"
#include "pkg/json/decode.h"
#include "pkg/json/text.h"
#include "pkg/json/writer.h"

namespace narad::metastore {

class FieldWriter {
 public:
  explicit FieldWriter(json::Writer& writer) : writer_(writer) {}

  template <class T>
  FieldWriter& operator()(std::string_view name, const T& value) {
    writer_.member(name, value);
    return *this;
  }
  FieldWriter& operator()(std::string_view name, const std::vector<std::string>& values) {
    writer_.key(name).begin_array();
    for (const std::string& v : values) writer_.value(v);
    writer_.end_array();
    return *this;
  }
  FieldWriter& operator()(std::string_view name, const std::vector<Grant>& grants) {
    writer_.key(name).begin_array();
    for (const Grant& g : grants) {
      writer_.begin_object();
      choice("action", g.action, kGrantActions);
      (*this)("patterns", g.patterns);
      writer_.end_object();
    }
    writer_.end_array();
    return *this;
  }
  // Left out if empty.
  template <class T>
  FieldWriter& operator()(std::string_view name, const std::optional<T>& value) {
    if (value) writer_.member(name, *value);
    return *this;
  }
  // A field that came after rows were already stored: left out while it is 0 or false.
  template <class Tag, class Rep>
  FieldWriter& later(std::string_view name, StrongNumber<Tag, Rep> value) {
    if (value.value() != 0) writer_.member(name, value);
    return *this;
  }
  FieldWriter& later(std::string_view name, const std::string& value) {
    if (!value.empty()) writer_.member(name, value);
    return *this;
  }
  FieldWriter& later(std::string_view name, std::uint64_t value) {
    if (value != 0) writer_.member(name, value);
    return *this;
  }
  FieldWriter& later(std::string_view name, bool value) {
    if (value) writer_.member(name, true);
    return *this;
  }
  // 16 hex digits.
  FieldWriter& hex(std::string_view name, std::uint64_t value) {
    writer_.member(name, to_hex16(value));
    return *this;
  }
  template <class Tag>
  FieldWriter& hex(std::string_view name, StrongNumber<Tag> value) {
    return hex(name, value.value());
  }
  // One of `all`, by the name that to_string() gives it.
  template <class E, std::size_t N>
  FieldWriter& choice(std::string_view name, E value, const std::array<E, N>&) {
    writer_.member(name, to_string(value));
    return *this;
  }

 private:
  json::Writer& writer_;
};

class FieldReader {
 public:
  explicit FieldReader(json::Value object) : object_(object), decoder_(object) {}

  template <class T>
  FieldReader& operator()(std::string_view name, T& value) {
    require(name);
    decoder_.field(name, value);
    return *this;
  }
  template <class Tag, class Rep>
  FieldReader& operator()(std::string_view name, StrongNumber<Tag, Rep>& value) {
    Rep plain = value.value();
    (*this)(name, plain);
    value = StrongNumber<Tag, Rep>(plain);
    return *this;
  }
  template <class T>
  FieldReader& operator()(std::string_view name, std::optional<T>& value) {
    decoder_.field(name, value);
    return *this;
  }
  FieldReader& operator()(std::string_view name, std::vector<Grant>& grants) {
    require(name);
    grants.clear();
    decoder_.each(name, [&grants](json::Value item) -> Result<void> {
      Grant grant;
      FieldReader f(item);
      f.choice("action", grant.action, kGrantActions);
      f("patterns", grant.patterns);
      NARAD_TRY(f.finish());
      grants.push_back(std::move(grant));
      return ok();
    });
    return *this;
  }
  template <class Tag, class Rep>
  FieldReader& later(std::string_view name, StrongNumber<Tag, Rep>& value) {
    Rep plain = 0;
    decoder_.field(name, plain);
    value = StrongNumber<Tag, Rep>(plain);
    return *this;
  }
  FieldReader& later(std::string_view name, std::string& value) {
    value.clear();
    decoder_.field(name, value);
    return *this;
  }
  FieldReader& later(std::string_view name, std::uint64_t& value) {
    value = 0;
    decoder_.field(name, value);
    return *this;
  }
  FieldReader& later(std::string_view name, bool& value) {
    value = false;
    decoder_.field(name, value);
    return *this;
  }
  FieldReader& hex(std::string_view name, std::uint64_t& value) {
    std::string text;
    (*this)(name, text);
    if (auto bits = parse_hex16(text)) {
      value = *bits;
    } else {
      fail(cat("field \"", name, "\" is not 16 hex digits"));
    }
    return *this;
  }
  template <class Tag>
  FieldReader& hex(std::string_view name, StrongNumber<Tag>& value) {
    std::uint64_t bits = 0;
    hex(name, bits);
    value = StrongNumber<Tag>(bits);
    return *this;
  }
  template <class E, std::size_t N>
  FieldReader& choice(std::string_view name, E& value, const std::array<E, N>& all) {
    std::string text;
    (*this)(name, text);
    for (E candidate : all) {
      if (text != to_string(candidate)) continue;
      value = candidate;
      return *this;
    }
    fail(cat("field \"", name, "\" has the unknown value \"", text, "\""));
    return *this;
  }

  // What was wrong first, or ok.
  Result<void> finish() {
    if (auto done = decoder_.finish(); !done) return done;
    if (!problem_.empty()) return Error(Errc::invalid_argument, problem_);
    return ok();
  }

 private:
  void require(std::string_view name) {
    if (!object_.is(json::Kind::object) || !object_.find(name)) {
      fail(cat("field \"", name, "\" is missing"));
    }
  }
  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }
  json::Value object_;
  json::Decoder decoder_;
  std::string problem_;
};

// `T` or `const T`, so that one describe() serves both directions.
template <class C, class T>
concept Described = std::same_as<std::remove_const_t<C>, T>;

}  // namespace narad::metastore

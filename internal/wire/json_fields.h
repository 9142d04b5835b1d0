#pragma once
// Reads JSON bodies of other nodes, field by field. Bounded before anything is kept; fields that
// nobody asks for are overlooked (a newer release may say more); the first problem is kept, and
// after one nothing counts. Pure.
//
//   return decode_object<Answer>({"the answer", kBytesMax}, body, [](Fields& f, Answer& m) {
//     f.text("leader", m.leader, 255).number("index", m.index);
//   });
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/ids.h"
#include "pkg/base/result.h"
#include "pkg/base/text.h"
#include "pkg/json/document.h"

namespace narad::wire {

// Fields of one object. `maybe_…` leave `out` as it is if there is no such field.
class Fields {
 public:
  explicit Fields(std::optional<json::Value> object) : object_(object) {
    if (!object_ || !object_->is(json::Kind::object)) fail("a JSON object was expected");
  }

  Fields& text(std::string_view name, std::string& out, std::size_t bytes_max) {
    const auto v = need(name, json::Kind::string);
    if (!v) return *this;
    if (v->as_string().size() > bytes_max) return fail(name, "is too long");
    out = std::string(v->as_string());
    return *this;
  }
  // 16 hex digits.
  Fields& id(std::string_view name, std::uint64_t& out) {
    std::string text;
    this->text(name, text, 16);
    if (problem_.empty()) {
      const auto bits = parse_hex16(text);
      if (!bits) return fail(name, "is not 16 hex digits");
      out = *bits;
    }
    return *this;
  }
  template <class Tag>
  Fields& id(std::string_view name, StrongNumber<Tag>& out) {
    std::uint64_t bits = out.value();
    id(name, bits);
    out = StrongNumber<Tag>(bits);
    return *this;
  }
  Fields& number(std::string_view name, std::uint64_t& out) {
    const auto v = need(name, json::Kind::number);
    if (!v) return *this;
    const auto n = v->as_uint64();
    if (!n) return fail(name, "is not a whole number");
    out = *n;
    return *this;
  }
  // At most `max`.
  Fields& number(std::string_view name, std::uint64_t& out, std::uint64_t max) {
    std::uint64_t n = out;
    number(name, n);
    if (problem_.empty() && n > max) return fail(name, "is too large");
    if (problem_.empty()) out = n;
    return *this;
  }
  template <class Tag>
  Fields& number(std::string_view name, StrongNumber<Tag>& out) {
    std::uint64_t n = out.value();
    number(name, n);
    out = StrongNumber<Tag>(n);
    return *this;
  }
  Fields& number(std::string_view name, UnixMillis& out) {
    const auto v = need(name, json::Kind::number);
    if (!v) return *this;
    const auto n = v->as_int64();
    if (!n) return fail(name, "is not a whole number");
    out = UnixMillis(*n);
    return *this;
  }
  Fields& flag(std::string_view name, bool& out) {
    const auto v = need(name, json::Kind::boolean);
    if (v) out = v->as_bool();
    return *this;
  }
  // Each element, at most `max` of them.
  template <class F>
  Fields& each(std::string_view name, std::size_t max, F item) {
    const auto v = need(name, json::Kind::array);
    if (!v) return *this;
    if (v->size() > max) return fail(name, "has too many elements");
    for (std::size_t i = 0; i < v->size() && problem_.empty(); ++i) item(v->element(i));
    return *this;
  }
  template <class F>
  Fields& maybe_each(std::string_view name, std::size_t max, F item) {
    return has(name) ? each(name, max, item) : *this;
  }
  // The object of that name.
  std::optional<json::Value> object(std::string_view name) {
    return need(name, json::Kind::object);
  }
  // Whether a field of that name is there; no after a problem.
  bool has(std::string_view name) const {
    return problem_.empty() && object_->find(name).has_value();
  }
  Fields& fail(std::string_view name, std::string_view problem) {
    return fail(cat("field \"", name, "\" ", problem));
  }
  Fields& fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return *this;
  }
  bool ok() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }

 private:
  std::optional<json::Value> need(std::string_view name, json::Kind kind) {
    if (!problem_.empty()) return std::nullopt;
    auto v = object_->find(name);
    if (!v) {
      fail(name, "is missing");
      return std::nullopt;
    }
    if (!v->is(kind)) {
      fail(name, cat("is not ", json::describe(kind)));
      return std::nullopt;
    }
    return v;
  }
  std::optional<json::Value> object_;
  std::string problem_;
};

struct BodyKind {
  std::string_view what;  // for errors: "the heartbeat"
  std::size_t bytes_max;
};

// Parses `body` and lets `read` take the fields of its root. invalid_argument, naming the field.
template <class T, class FieldsOf = Fields, class F>
Result<T> decode_object(BodyKind kind, std::string_view body, F read) {
  const auto bad = [&](std::string_view why) {
    return Error(Errc::invalid_argument, cat(kind.what, " cannot be read: ", why));
  };
  if (body.size() > kind.bytes_max) return bad("it is too long");
  auto document = json::Document::parse(std::string(body), 8);
  if (!document) return bad(document.error().text());
  T out;
  FieldsOf f(document.value().root());
  read(f, out);
  if (!f.ok()) return bad(f.problem());
  return out;
}

}  // namespace narad::wire

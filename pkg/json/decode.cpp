#include "pkg/json/decode.h"

#include "pkg/base/text.h"
#include "pkg/json/text.h"

namespace narad::json {
namespace {

constexpr std::string_view kPrefix = "invalid json: ";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

}  // namespace

Result<Document> parse_body(std::string text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return Error(Errc::invalid_argument, cat(kPrefix, "the body is empty"));
  }
  auto document = Document::parse(std::move(text), kBodyDepthMax);
  if (!document) {
    return Error(document.error().code(), cat(kPrefix, document.error().text()));
  }
  return document;
}

Decoder::Decoder(Value object, std::string where) : object_(object), where_(std::move(where)) {
  if (object_.is(Kind::object)) {
    known_.resize(object_.size());
  } else if (!object_.is(Kind::null)) {
    error_.emplace(Errc::invalid_argument,
                   cat(kPrefix, where_.empty() ? "" : where_ + ": ", "expected an object, got ",
                       describe(object_.kind())));
  }
}

std::string Decoder::path(std::string_view name) const {
  return where_.empty() ? std::string(name) : cat(where_, ".", name);
}

void Decoder::fail(std::string_view name, std::string_view problem) {
  if (error_) return;
  error_.emplace(Errc::invalid_argument, cat(kPrefix, "field ", quote(path(name)), ": ", problem));
}

std::optional<Value> Decoder::claim(std::string_view name) {
  std::optional<Value> last;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    const Member m = object_.member(i);
    if (!same_name(m.name, name)) continue;
    known_[i] = true;
    last = m.value;
  }
  return last;
}

void Decoder::each_value(std::string_view name, Kind wanted,
                         const std::function<void(Value)>& take) {
  for (std::size_t i = 0; i < known_.size(); ++i) {
    const Member m = object_.member(i);
    if (!same_name(m.name, name)) continue;
    known_[i] = true;
    if (m.value.is(Kind::null)) continue;
    if (m.value.is(wanted)) {
      take(m.value);
    } else {
      fail(name, cat("expected ", describe(wanted), ", got ", describe(m.value.kind())));
    }
  }
}

Decoder& Decoder::field(std::string_view name, std::string& out) {
  each_value(name, Kind::string, [&](Value v) { out = v.as_string(); });
  return *this;
}

Decoder& Decoder::field(std::string_view name, bool& out) {
  each_value(name, Kind::boolean, [&](Value v) { out = v.as_bool(); });
  return *this;
}

Decoder& Decoder::field(std::string_view name, std::vector<std::string>& out) {
  each_value(name, Kind::array, [&](Value v) {
    out.clear();
    for (std::size_t i = 0; i < v.size(); ++i) {
      const Value item = v.element(i);
      if (item.is(Kind::string)) {
        out.emplace_back(item.as_string());
      } else if (item.is(Kind::null)) {
        out.emplace_back();
      } else {
        fail(cat(name, "[", i, "]"), cat("expected a string, got ", describe(item.kind())));
      }
    }
  });
  return *this;
}

void Decoder::integer(std::string_view name, std::int64_t& out, std::int64_t low,
                      std::int64_t high) {
  each_value(name, Kind::number, [&](Value v) {
    const auto n = v.as_int64();
    if (!n) {
      fail(name, cat("expected an integer, got ", v.raw().substr(0, 40)));
    } else if (*n < low || *n > high) {
      fail(name, cat(*n, " is out of range"));
    } else {
      out = *n;
    }
  });
}

Decoder& Decoder::raw(std::string_view name, std::optional<std::string>& out) {
  out.reset();
  if (const auto v = claim(name)) out.emplace(v->raw());
  return *this;
}

Decoder& Decoder::each(std::string_view name, const std::function<Result<void>(Value)>& item) {
  std::optional<Value> last;
  each_value(name, Kind::array, [&](Value v) { last = v; });
  if (!last) return *this;
  for (std::size_t i = 0; i < last->size(); ++i) {
    auto r = item(last->element(i));
    if (!r && !error_) error_.emplace(r.error());
  }
  return *this;
}

Decoder& Decoder::object(std::string_view name, const std::function<Result<void>(Value)>& item) {
  std::optional<Value> last;
  each_value(name, Kind::object, [&](Value v) { last = v; });
  if (!last) return *this;
  auto r = item(*last);
  if (!r && !error_) error_.emplace(r.error());
  return *this;
}

Result<void> Decoder::finish() {
  if (error_) return *error_;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    if (known_[i]) continue;
    return Error(Errc::invalid_argument,
                 cat(kPrefix, "unknown field ", quote(path(object_.member(i).name))));
  }
  return ok();
}

}  // namespace narad::json

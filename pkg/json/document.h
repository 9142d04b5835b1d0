#pragma once
// A parsed JSON text: an immutable tree that remembers how each value was spelled.
//
// Unlike a general DOM it keeps the raw text of every value (schemas are compared byte for byte),
// the spelling of numbers (an integer field refuses 3.0), the order of members and their
// duplicates. Built without recursion; nesting is bounded by the caller.
//
// Lifetime: a Value points into its Document and is valid as long as the Document lives (moving the
// Document is fine). Thread-safe for reading.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/result.h"

namespace narad::json {

enum class Kind : std::uint8_t { null, boolean, number, string, array, object };
// "null", "a boolean", "a number", "a string", "an array", "an object".
std::string_view describe(Kind kind);

class Value;
struct Member;

class Document {
 public:
  // One value, as json::check() defines it. invalid_argument if it is none; too_large above 1 GiB.
  static Result<Document> parse(std::string text, std::size_t depth_max);

  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  Value root() const;
  const std::string& text() const;

 private:
  friend class Value;
  struct Tree;
  explicit Document(std::unique_ptr<Tree> tree);
  std::unique_ptr<Tree> tree_;
};

class Value {
 public:
  Kind kind() const;
  bool is(Kind k) const { return kind() == k; }
  // The value as it stands in the text, without the white space around it.
  std::string_view raw() const;
  // Identity within the document: equal ids, same value. They grow in the order of the text, so
  // what lies within a value has ids above its own and below those of whatever follows it.
  std::uint32_t id() const { return node_; }

  bool as_bool() const;                // REQUIRES a boolean
  std::string_view as_string() const;  // unescaped UTF-8; REQUIRES a string
  // The exact integer; nothing if it has a fraction or an exponent or does not fit. REQUIRES a
  // number.
  std::optional<std::int64_t> as_int64() const;
  std::optional<std::uint64_t> as_uint64() const;
  // The nearest double; nothing if its magnitude is beyond every finite double. REQUIRES a number.
  std::optional<double> as_double() const;

  // Elements of an array, or members of an object counting duplicates. 0 for all else.
  std::size_t size() const;
  Value element(std::size_t i) const;  // REQUIRES an array, i < size()
  Member member(std::size_t i) const;  // in the order of the text; REQUIRES an object, i < size()

  // Members by name: of duplicates only the last counts. REQUIRES an object.
  std::optional<Value> find(std::string_view name) const;
  std::size_t unique_size() const;
  Member unique_member(std::size_t i) const;  // sorted by name bytewise; i < unique_size()
  Value unique_name(std::size_t i) const;     // its name, as a string value

 private:
  friend class Document;
  Value(const Document::Tree* tree, std::uint32_t node) : tree_(tree), node_(node) {}
  const Document::Tree* tree_;
  std::uint32_t node_;
};

struct Member {
  std::string_view name;
  Value value;
};

// The JSON pointer (RFC 6901) from `root` to the value with this id; that of the object for the id
// of a name. REQUIRES: `id` is within `root`.
std::string pointer_to(Value root, std::uint32_t id);

}  // namespace narad::json

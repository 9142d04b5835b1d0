#include "pkg/json/document.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/json/text.h"

namespace narad::json {

// Nodes in the order of their first byte. `links` holds, per array, its elements; per object, name
// and value of each member in order, then the number of distinct names and the ordinals of their
// last occurrences sorted by name.
struct Document::Tree {
  struct Node {
    Kind kind;
    bool escaped = false;     // a string with escapes: its text lies in `decoded`
    std::uint32_t begin = 0;  // raw text
    std::uint32_t end = 0;
    std::uint32_t first = 0;  // into links (array, object) or decoded (escaped string)
    std::uint32_t count = 0;  // elements, members, or bytes
  };
  std::string text;
  std::string decoded;
  std::vector<Node> nodes;
  std::vector<std::uint32_t> links;

  std::string_view string_of(std::uint32_t node) const {
    const Node& n = nodes[node];
    if (n.escaped) return std::string_view(decoded).substr(n.first, n.count);
    return std::string_view(text).substr(n.begin + 1, n.end - n.begin - 2);
  }
  std::uint32_t unique_at(const Node& object) const { return object.first + 2 * object.count; }
};

namespace {

constexpr std::size_t kTextBytesMax = std::size_t{1} << 30;

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 63));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 63));
    out += static_cast<char>(0x80 | (c & 63));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 63));
    out += static_cast<char>(0x80 | ((c >> 6) & 63));
    out += static_cast<char>(0x80 | (c & 63));
  }
}

// A number or a word ends before one of these.
bool ends_scalar(char c) {
  return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

std::uint32_t hex4(std::string_view s) {
  std::uint32_t v = 0;
  std::from_chars(s.data(), s.data() + 4, v, 16);
  return v;
}

// `s` is the inside of a valid JSON string.
void append_unescaped(std::string& out, std::string_view s) {
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\') {
      out += s[i];
      continue;
    }
    switch (s[++i]) {
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'u': {
        std::uint32_t c = hex4(s.substr(i + 1));
        i += 4;
        if (c >= 0xD800 && c < 0xDC00) {
          c = 0x10000 + ((c - 0xD800) << 10) + (hex4(s.substr(i + 3)) - 0xDC00);
          i += 6;
        }
        append_utf8(out, c);
        break;
      }
      default:
        out += s[i];  // the quote, the backslash and the slash stand for themselves
    }
  }
}

}  // namespace

std::string_view describe(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "a boolean";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "an array";
    case Kind::object:
      return "an object";
  }
  return "?";
}

// Walks text that check() accepted. In valid JSON commas, colons and white space carry nothing that
// the brackets and the order of tokens do not.
class TreeBuilder {
 public:
  template <class Tree>
  static void build(Tree& t) {
    struct Open {
      std::uint32_t node;
      std::size_t pending;  // where its children begin in `children`
    };
    std::vector<Open> open;
    std::vector<std::uint32_t> children;  // of all open values; names count as children of objects
    const std::string& s = t.text;
    // At most: those within strings count too. What is not used is never touched.
    std::size_t values = 1;
    for (char c : s) values += c == ',' || c == ':' || c == '[' || c == '{' ? 1 : 0;
    t.nodes.reserve(values + 1);
    t.links.reserve(values + 1);
    auto add = [&](Kind kind, std::size_t begin, std::size_t end) {
      const auto id = static_cast<std::uint32_t>(t.nodes.size());
      t.nodes.push_back(
          {kind, false, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end), 0, 0});
      if (!open.empty()) children.push_back(id);
      return id;
    };
    for (std::size_t i = 0; i < s.size();) {
      const char c = s[i];
      const std::size_t begin = i;
      switch (c) {
        case ' ':
        case '\t':
        case '\n':
        case '\r':
        case ',':
        case ':':
          ++i;
          break;
        case '{':
        case '[': {
          const std::uint32_t id = add(c == '{' ? Kind::object : Kind::array, begin, begin);
          open.push_back({id, children.size()});
          ++i;
          break;
        }
        case '}':
        case ']': {
          const Open top = open.back();
          open.pop_back();
          t.nodes[top.node].end = static_cast<std::uint32_t>(++i);
          close(t, top.node, std::span(children).subspan(top.pending));
          children.resize(top.pending);
          break;
        }
        case '"': {
          bool escaped = false;
          for (++i; s[i] != '"'; ++i) {
            if (s[i] == '\\') {
              escaped = true;
              ++i;
            }
          }
          ++i;
          const std::uint32_t id = add(Kind::string, begin, i);
          if (escaped) {
            auto& node = t.nodes[id];
            node.escaped = true;
            node.first = static_cast<std::uint32_t>(t.decoded.size());
            append_unescaped(t.decoded, std::string_view(s).substr(begin + 1, i - begin - 2));
            node.count = static_cast<std::uint32_t>(t.decoded.size()) - node.first;
          }
          break;
        }
        default: {
          while (i < s.size() && !ends_scalar(s[i])) ++i;
          add(c == 'n'               ? Kind::null
              : c == 't' || c == 'f' ? Kind::boolean
                                     : Kind::number,
              begin, i);
        }
      }
    }
    NARAD_ASSERT(open.empty() && !t.nodes.empty());
  }

 private:
  template <class Tree>
  static void close(Tree& t, std::uint32_t id, std::span<const std::uint32_t> children) {
    auto& node = t.nodes[id];
    node.first = static_cast<std::uint32_t>(t.links.size());
    t.links.insert(t.links.end(), children.begin(), children.end());
    node.count = static_cast<std::uint32_t>(children.size());
    if (node.kind != Kind::object) return;
    NARAD_ASSERT(children.size() % 2 == 0);
    node.count /= 2;
    std::vector<std::uint32_t> order(node.count);
    for (std::uint32_t i = 0; i < node.count; ++i) order[i] = i;
    auto name = [&](std::uint32_t ordinal) { return t.string_of(children[2 * ordinal]); };
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const int c = name(a).compare(name(b));
      return c != 0 ? c < 0 : a > b;  // the last of equal names first: unique() keeps it
    });
    order.erase(std::unique(order.begin(), order.end(),
                            [&](std::uint32_t a, std::uint32_t b) { return name(a) == name(b); }),
                order.end());
    t.links.push_back(static_cast<std::uint32_t>(order.size()));
    t.links.insert(t.links.end(), order.begin(), order.end());
  }
};

Document::Document(std::unique_ptr<Tree> tree) : tree_(std::move(tree)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

Result<Document> Document::parse(std::string text, std::size_t depth_max) {
  if (text.size() > kTextBytesMax) {
    return Error(Errc::too_large, cat("a JSON text of ", text.size(), " bytes; at most ",
                                      kTextBytesMax, " are read"));
  }
  NARAD_TRY(check(text, depth_max));
  auto tree = std::make_unique<Tree>();
  tree->text = std::move(text);
  TreeBuilder::build(*tree);
  return Document(std::move(tree));
}

Value Document::root() const { return Value(tree_.get(), 0); }
const std::string& Document::text() const { return tree_->text; }

Kind Value::kind() const { return tree_->nodes[node_].kind; }

std::string_view Value::raw() const {
  const auto& n = tree_->nodes[node_];
  return std::string_view(tree_->text).substr(n.begin, n.end - n.begin);
}

bool Value::as_bool() const {
  NARAD_ASSERT(is(Kind::boolean));
  return raw() == "true";
}

std::string_view Value::as_string() const {
  NARAD_ASSERT(is(Kind::string));
  return tree_->string_of(node_);
}

std::optional<std::int64_t> Value::as_int64() const {
  NARAD_ASSERT(is(Kind::number));
  return parse_number<std::int64_t>(raw());
}

std::optional<std::uint64_t> Value::as_uint64() const {
  NARAD_ASSERT(is(Kind::number));
  if (raw() == "-0") return 0;
  return parse_number<std::uint64_t>(raw());
}

std::optional<double> Value::as_double() const {
  NARAD_ASSERT(is(Kind::number));
  const std::string_view s = raw();
  double value = 0;
  // Most numbers are short whole ones, which a double holds exactly.
  if (s.size() <= 15 && s.front() != '-') {
    std::uint64_t whole = 0;
    std::size_t i = 0;
    for (; i < s.size() && s[i] >= '0' && s[i] <= '9'; ++i) {
      whole = whole * 10 + static_cast<std::uint64_t>(s[i] - '0');
    }
    if (i == s.size()) return static_cast<double>(whole);
  }
  auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (ec == std::errc{}) return value;
  // Out of range: too small to tell from zero, or too big. The position of the first significant
  // digit relative to the point, plus the exponent, says which.
  const std::size_t e = s.find_first_of("eE");
  const std::string_view digits = s.substr(0, e);
  std::int64_t exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view text = s.substr(e + 1);
    if (text.front() == '+') text.remove_prefix(1);
    exponent = parse_number<std::int64_t>(text).value_or(text.front() == '-' ? -1'000'000'000
                                                                             : 1'000'000'000);
  }
  const std::size_t significant = digits.find_first_of("123456789");
  if (significant == std::string_view::npos) return 0.0;
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::int64_t magnitude =
      static_cast<std::int64_t>(point) - static_cast<std::int64_t>(significant) + exponent;
  if (magnitude > 0) return std::nullopt;
  return s.front() == '-' ? -0.0 : 0.0;
}

std::size_t Value::size() const {
  const auto& n = tree_->nodes[node_];
  return n.kind == Kind::array || n.kind == Kind::object ? n.count : 0;
}

Value Value::element(std::size_t i) const {
  const auto& n = tree_->nodes[node_];
  NARAD_ASSERT(n.kind == Kind::array && i < n.count);
  return Value(tree_, tree_->links[n.first + i]);
}

Member Value::member(std::size_t i) const {
  const auto& n = tree_->nodes[node_];
  NARAD_ASSERT(n.kind == Kind::object && i < n.count);
  return {tree_->string_of(tree_->links[n.first + 2 * i]),
          Value(tree_, tree_->links[n.first + 2 * i + 1])};
}

std::size_t Value::unique_size() const {
  const auto& n = tree_->nodes[node_];
  NARAD_ASSERT(n.kind == Kind::object);
  return tree_->links[tree_->unique_at(n)];
}

Member Value::unique_member(std::size_t i) const {
  const auto& n = tree_->nodes[node_];
  NARAD_ASSERT(n.kind == Kind::object && i < unique_size());
  return member(tree_->links[tree_->unique_at(n) + 1 + i]);
}

Value Value::unique_name(std::size_t i) const {
  const auto& n = tree_->nodes[node_];
  NARAD_ASSERT(n.kind == Kind::object && i < unique_size());
  const std::uint32_t ordinal = tree_->links[tree_->unique_at(n) + 1 + i];
  return Value(tree_, tree_->links[n.first + 2 * ordinal]);
}

std::optional<Value> Value::find(std::string_view name) const {
  std::size_t low = 0;
  std::size_t high = unique_size();
  while (low < high) {
    const std::size_t mid = (low + high) / 2;
    const Member m = unique_member(mid);
    const int c = m.name.compare(name);
    if (c == 0) return m.value;
    if (c < 0) {
      low = mid + 1;
    } else {
      high = mid;
    }
  }
  return std::nullopt;
}

namespace {

// How many of `size` children, in ascending order of ids, begin at or before `id`.
template <class IdOf>
std::size_t count_up_to(std::size_t size, std::uint32_t id, IdOf id_of) {
  std::size_t low = 0;
  std::size_t high = size;
  while (low < high) {
    const std::size_t mid = (low + high) / 2;
    if (id_of(mid) <= id) {
      low = mid + 1;
    } else {
      high = mid;
    }
  }
  return low;
}

void append_token(std::string& out, std::string_view name) {
  out += '/';
  for (char c : name) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
}

}  // namespace

std::string pointer_to(Value root, std::uint32_t id) {
  std::string out;
  Value at = root;
  while (at.id() != id && at.size() > 0) {
    if (at.is(Kind::array)) {
      const std::size_t n =
          count_up_to(at.size(), id, [&](std::size_t i) { return at.element(i).id(); });
      if (n == 0) break;
      append_token(out, std::to_string(n - 1));
      at = at.element(n - 1);
    } else {
      const std::size_t n =
          count_up_to(at.size(), id, [&](std::size_t i) { return at.member(i).value.id(); });
      // Past the last member that begins before it lies only the name of the next.
      if (n == 0) break;
      const Member m = at.member(n - 1);
      if (n < at.size() && id + 1 == at.member(n).value.id()) break;
      append_token(out, m.name);
      at = m.value;
    }
  }
  return out;
}

}  // namespace narad::json

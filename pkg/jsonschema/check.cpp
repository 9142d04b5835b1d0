// A document against a compiled schema: an explicit stack of frames, one per (schema, value) under
// way, so that neither depth nor references can exhaust the machine's own.
#include <algorithm>
#include <cmath>
#include <memory>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/jsonschema/compiled.h"
#include "pkg/jsonschema/equality.h"
#include "pkg/jsonschema/schema.h"

namespace narad::jsonschema {
namespace {

using json::Kind;
using json::Value;

std::size_t code_points(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::uint8_t types_of(Value v) {
  switch (v.kind()) {
    case Kind::null:
      return kNull;
    case Kind::boolean:
      return kBoolean;
    case Kind::number: {
      const double d = *v.as_double();
      return std::floor(d) == d ? kNumber | kInteger : kNumber;
    }
    case Kind::string:
      return kString;
    case Kind::array:
      return kArray;
    case Kind::object:
      return kObject;
  }
  return 0;
}

// Which members or elements some schema has looked at, for the unevaluated keywords.
struct Evaluated {
  bool all = false;
  std::vector<bool> some;

  void add(std::size_t i, std::size_t size) {
    some.resize(size);
    some[i] = true;
  }
  bool has(std::size_t i) const { return all || (i < some.size() && some[i]); }
  void merge(const Evaluated& other) {
    all |= other.all;
    if (some.size() < other.some.size()) some.resize(other.some.size());
    for (std::size_t i = 0; i < other.some.size(); ++i) {
      if (other.some[i]) some[i] = true;
    }
  }
};

struct Frame {
  NodeId node;
  Value value;
  bool in_place;                         // same value as the frame below
  std::unique_ptr<Evaluated> evaluated;  // kept only where somebody may ask
  std::size_t op = 0;                    // the operation under way, and how far it is:
  std::size_t i = 0;
  std::size_t j = 0;
  std::size_t hits = 0;
  bool matched = false;
};

enum class Step : std::uint8_t { pass, fail, wait };

class Machine {
 public:
  Machine(const Compiled& schema, Value root) : schema_(schema), root_(root) {}

  std::optional<Violation> run() {
    std::optional<bool> done = start(0, root_, nullptr, false);
    while (!done && !exhausted_) done = advance();
    if (exhausted_) {
      return Violation{
          "", cat("the document needs more than ", kStepsMax, " steps against this schema")};
    }
    if (*done) return std::nullopt;
    if (failure_.too_long) {
      const bool name = failure_.op->kind == OpKind::members;
      return Violation{json::pointer_to(root_, failure_.value->id()),
                       cat(name ? "its name is" : "is", " too long for a pattern of the schema")};
    }
    if (failure_.op == nullptr) return Violation{"", "the schema allows nothing"};
    return Violation{json::pointer_to(root_, failure_.value->id()),
                     describe_failure(*failure_.op, *failure_.value, failure_.at)};
  }

 private:
  struct Failure {
    const Op* op = nullptr;
    std::optional<Value> value;
    std::size_t at = 0;
    bool too_long = false;
  };

  Step fail(const Op& op, Value value, std::size_t at = 0) {
    failure_ = {&op, value, at, false};
    return Step::fail;
  }

  void charge(std::uint64_t steps) {
    steps_ += steps;
    exhausted_ |= steps_ > kStepsMax;
  }

  // Evaluates at once what needs no frame; otherwise pushes one and answers nothing.
  std::optional<bool> start(NodeId id, Value value, const Op* by, bool in_place,
                            bool track = false) {
    charge(1);
    const Node& node = schema_.nodes[id];
    if (node.never) {
      if (by != nullptr) failure_ = {by, value, 0, false};
      return false;
    }
    if (node.leaf) {
      for (const Op& op : node.ops) {
        if (assertion(op, value) == Step::fail) return false;
      }
      return true;
    }
    Frame frame{id, value, in_place, nullptr};
    if (track || node.wants_evaluated) frame.evaluated = std::make_unique<Evaluated>();
    stack_.push_back(std::move(frame));
    return std::nullopt;
  }

  // A child of the frame on top; nothing if it has to wait for it. The result of a child that ended
  // is taken first.
  std::optional<bool> child(const Op& op, NodeId id, Value value, bool in_place) {
    if (child_) return std::exchange(child_, std::nullopt);
    const bool track = in_place && stack_.back().evaluated != nullptr && op.kind != OpKind::not_;
    return start(id, value, &op, in_place, track);
  }

  // Runs the frame on top until it waits for a child or ends; the answer once the last has ended.
  std::optional<bool> advance() {
    const Node& node = schema_.nodes[stack_.back().node];
    while (!exhausted_) {
      Frame& frame = stack_.back();
      if (frame.op == node.ops.size()) return end(true);
      charge(1);
      const Op& op = node.ops[frame.op];
      const Step step = is_assertion(op.kind) ? assertion(op, frame.value) : applicator(op, node);
      if (step == Step::wait) return std::nullopt;
      if (step == Step::fail) return end(false);
      ++frame.op;  // no frame was pushed: still the one on top
      frame.i = frame.j = frame.hits = 0;
      frame.matched = false;
    }
    return std::nullopt;
  }

  std::optional<bool> end(bool result) {
    Frame ended = std::move(stack_.back());
    stack_.pop_back();
    if (stack_.empty()) return result;
    Evaluated* above = stack_.back().evaluated.get();
    const Op& op = schema_.nodes[stack_.back().node].ops[stack_.back().op];
    if (result && ended.in_place && above != nullptr && ended.evaluated &&
        op.kind != OpKind::not_) {
      above->merge(*ended.evaluated);
    }
    child_ = result;
    return std::nullopt;
  }

  // ---- assertions ---------------------------------------------------------------------------

  Step assertion(const Op& op, Value v) {
    switch (op.kind) {
      case OpKind::type:
        return (types_of(v) & op.types) != 0 ? Step::pass : fail(op, v);
      case OpKind::enumeration:
        return enumeration(op, v);
      case OpKind::minimum:
      case OpKind::maximum:
      case OpKind::exclusive_minimum:
      case OpKind::exclusive_maximum:
      case OpKind::multiple_of:
        return !v.is(Kind::number) || number_fits(op, *v.as_double()) ? Step::pass : fail(op, v);
      case OpKind::min_length:
      case OpKind::max_length:
        return !v.is(Kind::string) || count_fits(op, op.kind == OpKind::min_length, length_of(v))
                   ? Step::pass
                   : fail(op, v);
      case OpKind::min_items:
      case OpKind::max_items:
        return !v.is(Kind::array) || count_fits(op, op.kind == OpKind::min_items, v.size())
                   ? Step::pass
                   : fail(op, v);
      case OpKind::min_properties:
      case OpKind::max_properties:
        return !v.is(Kind::object) ||
                       count_fits(op, op.kind == OpKind::min_properties, v.unique_size())
                   ? Step::pass
                   : fail(op, v);
      case OpKind::pattern:
        return pattern(op, v);
      case OpKind::unique_items:
        return unique_items(op, v);
      case OpKind::required:
        return required(op, v);
      case OpKind::dependent_required:
        return dependent_required(op, v);
      default:
        NARAD_ASSERT(false, "not an assertion");
    }
  }

  std::size_t length_of(Value v) {
    charge(v.as_string().size() / 256);
    return code_points(v.as_string());
  }

  static bool count_fits(const Op& op, bool least, std::size_t n) {
    return least ? n >= op.count : n <= op.count;
  }

  static bool number_fits(const Op& op, double d) {
    switch (op.kind) {
      case OpKind::minimum:
        return d >= op.number;
      case OpKind::maximum:
        return d <= op.number;
      case OpKind::exclusive_minimum:
        return d > op.number;
      case OpKind::exclusive_maximum:
        return d < op.number;
      default:
        return is_multiple(d, op.number);
    }
  }

  Step enumeration(const Op& op, Value v) {
    if ((op.types & (1 << static_cast<int>(v.kind()))) == 0) return fail(op, v);
    std::string form;
    append_canonical(form, v, op.bytes_max);
    charge(form.size() / 64);
    const bool found = std::binary_search(op.names.begin(), op.names.end(), form);
    return found ? Step::pass : fail(op, v);
  }

  Step pattern(const Op& op, Value v) {
    if (!v.is(Kind::string)) return Step::pass;
    charge(v.as_string().size() / 64);
    const auto found = schema_.patterns[op.pattern].found_in(v.as_string());
    if (!found) return too_long(op, v);
    return *found ? Step::pass : fail(op, v);
  }

  Step too_long(const Op& op, Value v) {
    fail(op, v);
    failure_.too_long = true;
    return Step::fail;
  }

  Step unique_items(const Op& op, Value v) {
    if (!v.is(Kind::array)) return Step::pass;
    charge(v.raw().size() / 16);
    const auto again = find_duplicate(v);
    return again ? fail(op, v.element(*again)) : Step::pass;
  }

  Step required(const Op& op, Value v) {
    if (!v.is(Kind::object)) return Step::pass;
    charge(op.names.size());
    for (std::size_t i = 0; i < op.names.size(); ++i) {
      if (!v.find(op.names[i])) return fail(op, v, i);
    }
    return Step::pass;
  }

  Step dependent_required(const Op& op, Value v) {
    if (!v.is(Kind::object)) return Step::pass;
    for (std::size_t i = 0; i < op.names.size(); ++i) {
      charge(1 + op.lists[i].size());
      if (!v.find(op.names[i])) continue;
      for (const std::string& name : op.lists[i]) {
        if (!v.find(name)) return fail(op, v, i);
      }
    }
    return Step::pass;
  }

  // ---- applicators --------------------------------------------------------------------------
  // Each is called again, in the state it left in its frame, when a child it waited for has ended.
  // After child() answered nothing, references to the frame are stale.

  Step applicator(const Op& op, const Node& node) {
    switch (op.kind) {
      case OpKind::reference:
        return reference(op, op.nodes[0]);
      case OpKind::dynamic_reference:
        return reference(op, dynamic_target(op));
      case OpKind::all_of:
        return all_of(op);
      case OpKind::any_of:
        return any_of(op);
      case OpKind::one_of:
        return one_of(op);
      case OpKind::not_:
        return negation(op);
      case OpKind::conditional:
        return conditional(op);
      case OpKind::dependent_schemas:
        return dependent_schemas(op);
      case OpKind::property_names:
        return property_names(op);
      case OpKind::members:
        return members(op);
      case OpKind::elements:
        return elements(op);
      case OpKind::contains:
        return contains(op, node);
      case OpKind::unevaluated_items:
        return unevaluated(op, Kind::array);
      case OpKind::unevaluated_properties:
        return unevaluated(op, Kind::object);
      default:
        NARAD_ASSERT(false, "not an applicator");
    }
  }

  Frame& top() { return stack_.back(); }

  // The outermost place of that name in the dynamic scope, else the one it names by itself.
  NodeId dynamic_target(const Op& op) {
    if (child_ || op.dynamic.empty()) return op.nodes[0];
    charge(stack_.size());
    for (const Frame& frame : stack_) {
      for (const auto& [resource, node] : op.dynamic) {
        if (schema_.nodes[frame.node].resource == resource) return node;
      }
    }
    return op.nodes[0];
  }

  Step reference(const Op& op, NodeId target) {
    const auto r = child(op, target, top().value, true);
    if (!r) return Step::wait;
    return *r ? Step::pass : Step::fail;
  }

  Step all_of(const Op& op) {
    for (; top().i < op.nodes.size(); ++top().i) {
      const auto r = child(op, op.nodes[top().i], top().value, true);
      if (!r) return Step::wait;
      if (!*r) return Step::fail;
    }
    return Step::pass;
  }

  Step any_of(const Op& op) {
    for (; top().i < op.nodes.size(); ++top().i) {
      const auto r = child(op, op.nodes[top().i], top().value, true);
      if (!r) return Step::wait;
      if (!*r) continue;
      ++top().hits;
      // What the others evaluate counts too.
      if (top().evaluated == nullptr) return Step::pass;
    }
    return top().hits > 0 ? Step::pass : fail(op, top().value);
  }

  Step one_of(const Op& op) {
    for (; top().i < op.nodes.size(); ++top().i) {
      const auto r = child(op, op.nodes[top().i], top().value, true);
      if (!r) return Step::wait;
      if (*r && ++top().hits > 1) return fail(op, top().value, top().i);
    }
    return top().hits == 1 ? Step::pass : fail(op, top().value);
  }

  Step negation(const Op& op) {
    const auto r = child(op, op.nodes[0], top().value, true);
    if (!r) return Step::wait;
    return *r ? fail(op, top().value) : Step::pass;
  }

  Step conditional(const Op& op) {
    if (top().i == 0) {
      const bool matters =
          op.nodes[1] != kNoNode || op.nodes[2] != kNoNode || top().evaluated != nullptr;
      if (!matters) return Step::pass;
      const auto r = child(op, op.nodes[0], top().value, true);
      if (!r) return Step::wait;
      top().i = *r ? 1 : 2;
    }
    const NodeId branch = op.nodes[top().i];
    if (branch == kNoNode) return Step::pass;
    const auto r = child(op, branch, top().value, true);
    if (!r) return Step::wait;
    return *r ? Step::pass : Step::fail;
  }

  Step dependent_schemas(const Op& op) {
    if (!top().value.is(Kind::object)) return Step::pass;
    for (; top().i < op.nodes.size(); ++top().i) {
      charge(1);
      if (!child_ && !top().value.find(op.names[top().i])) continue;
      const auto r = child(op, op.nodes[top().i], top().value, true);
      if (!r) return Step::wait;
      if (!*r) return Step::fail;
    }
    return Step::pass;
  }

  Step property_names(const Op& op) {
    const Value object = top().value;
    if (!object.is(Kind::object)) return Step::pass;
    for (; top().i < object.unique_size(); ++top().i) {
      const auto r = child(op, op.nodes[0], object.unique_name(top().i), false);
      if (!r) return Step::wait;
      if (!*r) return fail(op, object, top().i);
    }
    return Step::pass;
  }

  // For each member, in this order: its own schema, those of the patterns that match its name, or,
  // if none of these exist, the one for the rest.
  Step members(const Op& op) {
    const Value object = top().value;
    if (!object.is(Kind::object)) return Step::pass;
    const std::size_t ways = 1 + op.patterns.size() + 1;
    for (; top().i < object.unique_size(); ++top().i, top().j = 0, top().matched = false) {
      const json::Member member = object.unique_member(top().i);
      for (; top().j < ways; ++top().j) {
        NodeId target = kNoNode;
        if (!child_) {
          const auto way = way_for(op, top().j, member.name, top().matched);
          if (!way) return too_long(op, member.value);
          target = *way;
          if (target == kNoNode) continue;
          top().matched = true;
        }
        const auto r = child(op, target, member.value, false);
        if (!r) return Step::wait;
        if (!*r) return Step::fail;
        if (top().evaluated) top().evaluated->add(top().i, object.unique_size());
      }
    }
    return Step::pass;
  }

  // kNoNode: that way does not apply. Nothing: the name is too long for the pattern.
  std::optional<NodeId> way_for(const Op& op, std::size_t way, std::string_view name,
                                bool matched) {
    if (way == 0) {
      const auto at = std::lower_bound(op.names.begin(), op.names.end(), name);
      const bool found = at != op.names.end() && *at == name;
      return found ? op.nodes[static_cast<std::size_t>(at - op.names.begin())] : kNoNode;
    }
    if (way <= op.patterns.size()) {
      charge(1 + name.size() / 64);
      const auto& [pattern, node] = op.patterns[way - 1];
      const auto found = schema_.patterns[pattern].found_in(name);
      if (!found) return std::nullopt;
      return *found ? node : kNoNode;
    }
    return matched ? kNoNode : op.rest;
  }

  Step elements(const Op& op) {
    const Value array = top().value;
    if (!array.is(Kind::array)) return Step::pass;
    const std::size_t covered =
        op.rest != kNoNode ? array.size() : std::min(array.size(), op.nodes.size());
    for (; top().i < covered; ++top().i) {
      const NodeId target = top().i < op.nodes.size() ? op.nodes[top().i] : op.rest;
      const auto r = child(op, target, array.element(top().i), false);
      if (!r) return Step::wait;
      if (!*r) return Step::fail;
      if (top().evaluated) top().evaluated->add(top().i, array.size());
    }
    return Step::pass;
  }

  Step contains(const Op& op, const Node& node) {
    const Value array = top().value;
    if (!array.is(Kind::array)) return Step::pass;
    for (; top().i < array.size(); ++top().i) {
      const auto r = child(op, op.nodes[0], array.element(top().i), false);
      if (!r) return Step::wait;
      if (!*r) continue;
      if (++top().hits > op.most) return fail(op, array, 1);
      const bool marks = top().evaluated != nullptr && node.contains_evaluates;
      if (marks) top().evaluated->add(top().i, array.size());
      const bool bounded = op.most < array.size();
      if (!marks && !bounded && top().hits >= op.count) return Step::pass;
    }
    return top().hits >= op.count ? Step::pass : fail(op, array);
  }

  Step unevaluated(const Op& op, Kind kind) {
    const Value value = top().value;
    if (!value.is(kind)) return Step::pass;
    const bool array = kind == Kind::array;
    const std::size_t size = array ? value.size() : value.unique_size();
    for (; top().i < size; ++top().i) {
      charge(1);
      if (!child_ && top().evaluated->has(top().i)) continue;
      const Value inner = array ? value.element(top().i) : value.unique_member(top().i).value;
      const auto r = child(op, op.nodes[0], inner, false);
      if (!r) return Step::wait;
      if (!*r) return Step::fail;
    }
    top().evaluated->all = true;
    return Step::pass;
  }

  const Compiled& schema_;
  Value root_;
  std::vector<Frame> stack_;
  std::optional<bool> child_;  // how the child that just ended fared
  Failure failure_;
  std::uint64_t steps_ = 0;
  bool exhausted_ = false;
};

// A number that no finite double comes near, if there is one.
std::optional<Value> find_overflow(Value root) {
  std::vector<Value> open{root};
  const auto fits = [](Value v) {
    // Below 300 digits without an exponent it always does.
    const std::string_view raw = v.raw();
    return (raw.size() < 300 && raw.find_first_of("eE") == std::string_view::npos) ||
           v.as_double().has_value();
  };
  while (!open.empty()) {
    const Value v = open.back();
    open.pop_back();
    if (v.is(Kind::number) && !fits(v)) return v;
    for (std::size_t i = 0; i < v.size(); ++i) {
      const Value child = v.is(Kind::array) ? v.element(i) : v.member(i).value;
      if (child.is(Kind::array) || child.is(Kind::object)) {
        open.push_back(child);
      } else if (child.is(Kind::number) && !fits(child)) {
        return child;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::string to_string(const Violation& violation) {
  return cat("at ", violation.path.empty() ? "the top" : violation.path, ": ", violation.text);
}

Schema::Schema(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

std::optional<Violation> Schema::check(const json::Document& document) const {
  return Machine(*compiled_, document.root()).run();
}

Result<void> Schema::validate(std::string document) const {
  NARAD_TRY(const json::Document parsed, parse_document(std::move(document)));
  if (const auto violation = check(parsed)) {
    return Error(Errc::invalid_argument, cat("schema violation ", to_string(*violation)));
  }
  return ok();
}

Result<json::Document> parse_document(std::string text) {
  auto document = json::Document::parse(std::move(text), kDepthMax);
  if (!document) return document.error().with_context("not valid JSON");
  const json::Value root = document.value().root();
  if (const auto number = find_overflow(root)) {
    return Error(Errc::invalid_argument, cat("the number at ", json::pointer_to(root, number->id()),
                                             " does not fit a 64-bit float"));
  }
  return document;
}

}  // namespace narad::jsonschema

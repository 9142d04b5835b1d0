// From text to graph: resources.cpp has found the schemas; here each becomes a node, references
// become edges, and edges that stay on one instance value are proven to end.
#include <algorithm>
#include <limits>
#include <set>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/json/text.h"
#include "pkg/jsonschema/compiled.h"
#include "pkg/jsonschema/equality.h"
#include "pkg/jsonschema/resources.h"
#include "pkg/jsonschema/schema.h"

namespace narad::jsonschema {
namespace {

using json::Kind;
using json::Value;

constexpr std::size_t kNodesMax = 100'000;
constexpr std::size_t kPatternMemoryMax = 512 << 20;
// How many schemas may be applied to one value one inside the other.
constexpr std::size_t kChainMax = 256;
constexpr std::string_view kTypeNames[] = {"null",   "boolean", "number", "integer",
                                           "string", "array",   "object"};

Error refused(std::string text) { return Error(Errc::invalid_argument, std::move(text)); }

std::uint8_t type_bit(std::string_view name) {
  const auto at = std::find(std::begin(kTypeNames), std::end(kTypeNames), name);
  return static_cast<std::uint8_t>(1 << (at - std::begin(kTypeNames)));
}

std::uint64_t count_of(Value v) {
  constexpr double kLimit = 9e18;
  const double d = v.as_double().value_or(kLimit);
  return d >= kLimit ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(d);
}

std::vector<std::string> strings_of(Value array) {
  std::vector<std::string> out;
  out.reserve(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) out.emplace_back(array.element(i).as_string());
  return out;
}

class Compiler {
 public:
  Compiler(Compiled& out, Resources& resources) : out_(out), resources_(resources) {}

  Result<void> run() {
    node_for(out_.document.root());
    // Resolving a reference may find further schemas; they join the end of the list.
    for (std::size_t i = 0; i < resources_.schemas().size(); ++i) {
      node_for(resources_.schemas()[i]);
    }
    for (std::size_t next = 0; next < out_.nodes.size(); ++next) {
      if (out_.nodes.size() > kNodesMax) return refused("the schema has too many subschemas");
      NARAD_TRY(fill(static_cast<NodeId>(next)));
      for (; known_ < resources_.schemas().size(); ++known_) {
        node_for(resources_.schemas()[known_]);
      }
    }
    fill_dynamic();
    return check_chains();
  }

 private:
  NodeId node_for(Value schema) {
    const auto [at, fresh] = node_of_.emplace(schema.id(), static_cast<NodeId>(out_.nodes.size()));
    if (fresh) {
      Node node{schema};
      node.resource = resources_.resource_of(schema);
      out_.nodes.push_back(std::move(node));
    }
    return at->second;
  }

  std::optional<Value> keyword(Value schema, std::string_view name) const {
    return schema.is(Kind::object) ? schema.find(name) : std::nullopt;
  }

  Result<void> fill(NodeId id) {
    const Value schema = out_.nodes[id].schema;
    ops_.clear();
    if (schema.is(Kind::boolean)) {
      out_.nodes[id].never = !schema.as_bool();
      return ok();
    }
    const std::uint32_t resource = out_.nodes[id].resource;
    if (hides_siblings(resources_.draft(), schema)) {
      NARAD_TRY(add_references(schema, resource));
    } else {
      NARAD_TRY(add_assertions(schema));
      NARAD_TRY(add_references(schema, resource));
      add_in_place(schema);
      NARAD_TRY(add_members(schema));
      add_elements(schema);
      add_unevaluated(schema);
    }
    Node& node = out_.nodes[id];
    node.ops = std::move(ops_);
    node.contains_evaluates = resources_.draft() == Draft::draft2020;
    for (const Op& op : node.ops) {
      if (!is_assertion(op.kind)) node.leaf = false;
      if (op.kind >= OpKind::unevaluated_items) node.wants_evaluated = true;
    }
    return ok();
  }

  Op& add_op(OpKind kind, Value keyword) {
    Op op{kind, keyword};
    ops_.push_back(std::move(op));
    return ops_.back();
  }

  Result<void> add_assertions(Value schema) {
    if (const auto v = keyword(schema, "type")) {
      Op& op = add_op(OpKind::type, *v);
      if (v->is(Kind::string)) op.types = type_bit(v->as_string());
      for (std::size_t i = 0; i < v->size(); ++i) {
        op.types = static_cast<std::uint8_t>(op.types | type_bit(v->element(i).as_string()));
      }
    }
    add_enumeration(schema);
    constexpr std::pair<std::string_view, OpKind> kNumbers[] = {
        {"minimum", OpKind::minimum},
        {"maximum", OpKind::maximum},
        {"exclusiveMinimum", OpKind::exclusive_minimum},
        {"exclusiveMaximum", OpKind::exclusive_maximum},
        {"multipleOf", OpKind::multiple_of}};
    for (const auto& [name, kind] : kNumbers) {
      if (const auto v = keyword(schema, name)) add_op(kind, *v).number = *v->as_double();
    }
    constexpr std::pair<std::string_view, OpKind> kCounts[] = {
        {"minLength", OpKind::min_length},         {"maxLength", OpKind::max_length},
        {"minItems", OpKind::min_items},           {"maxItems", OpKind::max_items},
        {"minProperties", OpKind::min_properties}, {"maxProperties", OpKind::max_properties}};
    for (const auto& [name, kind] : kCounts) {
      if (const auto v = keyword(schema, name)) add_op(kind, *v).count = count_of(*v);
    }
    if (const auto v = keyword(schema, "uniqueItems"); v && v->as_bool()) {
      add_op(OpKind::unique_items, *v);
    }
    if (const auto v = keyword(schema, "required")) {
      add_op(OpKind::required, *v).names = strings_of(*v);
    }
    add_dependent_required(schema);
    if (const auto v = keyword(schema, "pattern")) {
      NARAD_TRY(const std::size_t index, pattern_for(v->as_string(), schema));
      add_op(OpKind::pattern, *v).pattern = index;
    }
    return ok();
  }

  void add_enumeration(Value schema) {
    const auto list = keyword(schema, "enum");
    const auto one = keyword(schema, "const");
    if (list) {
      Op& op = add_op(OpKind::enumeration, *list);
      for (std::size_t i = 0; i < list->size(); ++i) add_constant(op, list->element(i));
    }
    if (one) add_constant(add_op(OpKind::enumeration, *one), *one);
    for (Op& op : ops_) {
      if (op.kind == OpKind::enumeration) std::sort(op.names.begin(), op.names.end());
    }
  }

  static void add_constant(Op& op, Value v) {
    std::string form;
    append_canonical(form, v, std::string::npos);
    op.bytes_max = std::max(op.bytes_max, form.size());
    op.types = static_cast<std::uint8_t>(op.types | (1 << static_cast<int>(v.kind())));
    op.names.push_back(std::move(form));
  }

  void add_dependent_required(Value schema) {
    for (std::string_view name : {"dependentRequired", "dependencies"}) {
      const auto v = keyword(schema, name);
      if (!v) continue;
      Op op{OpKind::dependent_required, *v};
      for (std::size_t i = 0; i < v->unique_size(); ++i) {
        const json::Member m = v->unique_member(i);
        if (!m.value.is(Kind::array)) continue;
        op.names.emplace_back(m.name);
        op.lists.push_back(strings_of(m.value));
      }
      if (!op.names.empty()) ops_.push_back(std::move(op));
    }
  }

  Result<std::size_t> pattern_for(std::string_view text, Value schema) {
    const auto known = pattern_of_.find(text);
    if (known != pattern_of_.end()) return known->second;
    auto pattern = Pattern::compile(text);
    if (!pattern) return pattern.error().with_context(resources_.place(schema));
    pattern_memory_ += pattern.value().memory();
    if (pattern_memory_ > kPatternMemoryMax) {
      return refused("the schema has too many patterns");
    }
    out_.patterns.push_back(std::move(pattern).value());
    pattern_of_.emplace(text, out_.patterns.size() - 1);
    return out_.patterns.size() - 1;
  }

  Result<Resources::Target> target_of(Value schema, std::uint32_t resource, Value reference) {
    auto target = resources_.resolve(resource, reference.as_string());
    if (!target) return target.error().with_context(resources_.place(schema));
    return target;
  }

  Result<void> add_references(Value schema, std::uint32_t resource) {
    if (const auto v = keyword(schema, "$ref")) {
      NARAD_TRY(const auto target, target_of(schema, resource, *v));
      const NodeId node = node_for(target.schema);
      add_op(OpKind::reference, *v).nodes.push_back(node);
    }
    if (hides_siblings(resources_.draft(), schema)) return ok();
    for (std::string_view name : {"$dynamicRef", "$recursiveRef"}) {
      const auto v = keyword(schema, name);
      if (!v) continue;
      NARAD_TRY(const auto target, target_of(schema, resource, *v));
      const NodeId node = node_for(target.schema);
      Op& op = add_op(OpKind::dynamic_reference, *v);
      op.nodes.push_back(node);
      // Until all resources are known, only the name: empty for one that is not dynamic at all.
      if (target.dynamic) op.names.push_back(target.anchor);
      if (name == "$recursiveRef") op.names.push_back("");
    }
    return ok();
  }

  // Where a dynamic reference may lead, per resource in the dynamic scope.
  void fill_dynamic() {
    for (Node& node : out_.nodes) {
      for (Op& op : node.ops) {
        if (op.kind != OpKind::dynamic_reference || op.names.empty()) continue;
        const std::string anchor = op.names.front();
        op.names.clear();
        const auto& all = resources_.all();
        if (anchor.empty() && !all[out_.nodes[op.nodes[0]].resource].recursive_anchor) continue;
        for (std::uint32_t r = 0; r < all.size(); ++r) {
          if (anchor.empty()) {
            if (all[r].recursive_anchor) op.dynamic.emplace_back(r, node_of_.at(all[r].root.id()));
          } else if (const auto at = all[r].dynamic_anchors.find(anchor);
                     at != all[r].dynamic_anchors.end()) {
            op.dynamic.emplace_back(r, node_of_.at(at->second.id()));
          }
        }
      }
    }
  }

  void add_children(Op& op, Shape shape, Value v) {
    for (Value child : subschemas_of(shape, v)) op.nodes.push_back(node_for(child));
  }

  void add_in_place(Value schema) {
    constexpr std::pair<std::string_view, OpKind> kLists[] = {
        {"allOf", OpKind::all_of}, {"anyOf", OpKind::any_of}, {"oneOf", OpKind::one_of}};
    for (const auto& [name, kind] : kLists) {
      if (const auto v = keyword(schema, name)) add_children(add_op(kind, *v), Shape::schemas, *v);
    }
    if (const auto v = keyword(schema, "not")) add_op(OpKind::not_, *v).nodes = {node_for(*v)};
    if (const auto v = keyword(schema, "if")) {
      const auto then = keyword(schema, "then");
      const auto otherwise = keyword(schema, "else");
      add_op(OpKind::conditional, *v).nodes = {node_for(*v), then ? node_for(*then) : kNoNode,
                                               otherwise ? node_for(*otherwise) : kNoNode};
    }
    for (std::string_view name : {"dependentSchemas", "dependencies"}) {
      const auto v = keyword(schema, name);
      if (!v) continue;
      Op op{OpKind::dependent_schemas, *v};
      for (std::size_t i = 0; i < v->unique_size(); ++i) {
        const json::Member m = v->unique_member(i);
        if (m.value.is(Kind::array)) continue;
        op.names.emplace_back(m.name);
        op.nodes.push_back(node_for(m.value));
      }
      if (!op.names.empty()) ops_.push_back(std::move(op));
    }
  }

  Result<void> add_members(Value schema) {
    if (const auto v = keyword(schema, "propertyNames")) {
      add_op(OpKind::property_names, *v).nodes = {node_for(*v)};
    }
    const auto named = keyword(schema, "properties");
    const auto matched = keyword(schema, "patternProperties");
    const auto rest = keyword(schema, "additionalProperties");
    if (!named && !matched && !rest) return ok();
    Op op{OpKind::members, rest ? *rest : named ? *named : *matched};
    for (std::size_t i = 0; named && i < named->unique_size(); ++i) {
      const json::Member m = named->unique_member(i);
      op.names.emplace_back(m.name);
      op.nodes.push_back(node_for(m.value));
    }
    for (std::size_t i = 0; matched && i < matched->unique_size(); ++i) {
      const json::Member m = matched->unique_member(i);
      NARAD_TRY(const std::size_t pattern, pattern_for(m.name, schema));
      op.patterns.emplace_back(pattern, node_for(m.value));
    }
    if (rest) op.rest = node_for(*rest);
    ops_.push_back(std::move(op));
    return ok();
  }

  void add_elements(Value schema) {
    const auto items = keyword(schema, "items");
    const bool tuple = items && items->is(Kind::array);
    const auto prefix = tuple ? items : keyword(schema, "prefixItems");
    // additionalItems means something only beside an array in items.
    const auto rest = tuple ? keyword(schema, "additionalItems") : items;
    if (prefix || rest) {
      Op& op = add_op(OpKind::elements, rest ? *rest : *prefix);
      if (prefix) add_children(op, Shape::schemas, *prefix);
      if (rest) op.rest = node_for(*rest);
    }
    if (const auto v = keyword(schema, "contains")) {
      Op& op = add_op(OpKind::contains, *v);
      op.nodes = {node_for(*v)};
      const auto least = keyword(schema, "minContains");
      const auto most = keyword(schema, "maxContains");
      op.count = least ? count_of(*least) : 1;
      op.most = most ? count_of(*most) : std::numeric_limits<std::uint64_t>::max();
    }
  }

  void add_unevaluated(Value schema) {
    if (const auto v = keyword(schema, "unevaluatedItems")) {
      add_op(OpKind::unevaluated_items, *v).nodes = {node_for(*v)};
    }
    if (const auto v = keyword(schema, "unevaluatedProperties")) {
      add_op(OpKind::unevaluated_properties, *v).nodes = {node_for(*v)};
    }
  }

  std::vector<NodeId> in_place_children(const Node& node) const {
    std::vector<NodeId> out;
    for (const Op& op : node.ops) {
      if (!is_in_place(op.kind)) continue;
      for (NodeId child : op.nodes) {
        if (child != kNoNode) out.push_back(child);
      }
      for (const auto& [resource, child] : op.dynamic) out.push_back(child);
    }
    return out;
  }

  // Depth-first over the edges that stay on one value: no way back to a node still open, and no
  // chain longer than kChainMax. A dynamic reference counts with every place it might lead to.
  Result<void> check_chains() const {
    struct Open {
      NodeId node;
      std::vector<NodeId> children;
      std::size_t next = 0;
    };
    enum : std::uint8_t { kNew, kOpen, kDone };
    std::vector<std::uint8_t> state(out_.nodes.size(), kNew);
    std::vector<std::size_t> length(out_.nodes.size(), 1);
    for (NodeId start = 0; start < out_.nodes.size(); ++start) {
      if (state[start] != kNew) continue;
      std::vector<Open> open;
      open.push_back({start, in_place_children(out_.nodes[start])});
      state[start] = kOpen;
      while (!open.empty()) {
        Open& top = open.back();
        if (top.next == top.children.size()) {
          state[top.node] = kDone;
          const std::size_t below = length[top.node];
          open.pop_back();
          if (open.empty()) break;
          std::size_t& above = length[open.back().node];
          above = std::max(above, below + 1);
          if (above > kChainMax) return refused("references in the schema are nested too deep");
          continue;
        }
        const NodeId child = top.children[top.next++];
        if (state[child] == kOpen) {
          return refused(cat(resources_.place(out_.nodes[child].schema),
                             " refers to itself without going into the instance"));
        }
        if (state[child] == kDone) {
          length[top.node] = std::max(length[top.node], length[child] + 1);
          if (length[top.node] > kChainMax) {
            return refused("references in the schema are nested too deep");
          }
          continue;
        }
        state[child] = kOpen;
        open.push_back({child, in_place_children(out_.nodes[child])});
      }
    }
    return ok();
  }

  Compiled& out_;
  Resources& resources_;
  std::vector<Op> ops_;                                // of the node being filled
  std::unordered_map<std::uint32_t, NodeId> node_of_;  // value id → node
  std::map<std::string, std::size_t, std::less<>> pattern_of_;
  std::size_t pattern_memory_ = 0;
  std::size_t known_ = 0;
};

}  // namespace

Result<Schema> Schema::compile(std::string text) {
  constexpr std::string_view kContext = "invalid schema";
  auto document = parse_document(std::move(text));
  if (!document) return document.error().with_context(kContext);
  auto compiled = std::make_shared<Compiled>(std::move(document).value());
  auto resources = Resources::discover(compiled->document.root());
  if (!resources) return resources.error().with_context(kContext);
  Compiler compiler(*compiled, resources.value());
  if (auto r = compiler.run(); !r) return r.error().with_context(kContext);
  return Schema(std::move(compiled));
}

}  // namespace narad::jsonschema

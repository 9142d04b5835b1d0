#include "pkg/http/router.h"

#include <algorithm>
#include <map>
#include <optional>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/http/message.h"
#include "pkg/http/query.h"

namespace narad::http {
namespace {

constexpr std::array<std::pair<Method, std::string_view>, 7> kMethods = {{
    {Method::get, "GET"},
    {Method::head, "HEAD"},
    {Method::post, "POST"},
    {Method::put, "PUT"},
    {Method::patch, "PATCH"},
    {Method::delete_, "DELETE"},
    {Method::options, "OPTIONS"},
}};
constexpr std::size_t kMethodCount = kMethods.size();

std::optional<std::size_t> slot_of(Method method) {
  if (method == Method::other) return std::nullopt;
  return static_cast<std::size_t>(method);
}

// Takes the next segment off `rest`, which starts with '/'.
std::string_view take_segment(std::string_view& rest) {
  rest.remove_prefix(1);
  const std::size_t slash = rest.find('/');
  const std::string_view segment = rest.substr(0, slash);
  rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
  return segment;
}

// No empty segment but the last (a trailing slash), no dot segment.
bool is_clean(std::string_view path) {
  if (path.empty() || path[0] != '/') return false;
  while (!path.empty()) {
    const std::string_view segment = take_segment(path);
    if (segment == "." || segment == ".." || (segment.empty() && !path.empty())) return false;
  }
  return true;
}

}  // namespace

std::string_view to_string(Method method) {
  for (const auto& [m, name] : kMethods) {
    if (m == method) return name;
  }
  return "OTHER";
}

Method parse_method(std::string_view name) {
  for (const auto& [method, n] : kMethods) {
    if (n == name) return method;
  }
  return Method::other;
}

struct Router::Node {
  // Few children per node: a sorted vector would not be faster than this.
  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
  std::unique_ptr<Node> parameter;
  std::array<const Route*, kMethodCount> routes{};

  const Route* route(Method method) const {
    const auto slot = slot_of(method);
    if (!slot) return nullptr;
    if (const Route* exact = routes[*slot]) return exact;
    if (method != Method::head) return nullptr;
    const Route* get = routes[*slot_of(Method::get)];
    return get != nullptr && get->options.serves_head ? get : nullptr;
  }
  bool has_routes() const {
    return std::any_of(routes.begin(), routes.end(), [](const Route* r) { return r != nullptr; });
  }

  // The node for `rest`, preferring literals; parameter values go to `values`.
  const Node* find(std::string_view rest, std::array<std::string, RouteMatch::kParamsMax>& values,
                   std::size_t depth) const {
    if (rest.empty()) return has_routes() ? this : nullptr;
    const std::string_view raw = take_segment(rest);
    std::string decoded;
    std::string_view segment = raw;
    if (raw.find('%') != std::string_view::npos) {
      auto d = decode_path(raw);
      if (!d) return nullptr;
      decoded = std::move(*d);
      segment = decoded;
    }
    if (auto it = literals.find(segment); it != literals.end()) {
      if (const Node* found = it->second->find(rest, values, depth)) return found;
    }
    if (parameter == nullptr || segment.empty()) return nullptr;
    const Node* found = parameter->find(rest, values, depth + 1);
    if (found != nullptr) values[depth] = segment;
    return found;
  }
};

Router::Router() : root_(std::make_unique<Node>()) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

const Route& Router::add(std::string_view pattern, int id, RouteOptions options) {
  const std::size_t space = pattern.find(' ');
  NARAD_ASSERT(space != std::string_view::npos, pattern);
  auto route = std::make_unique<Route>();
  route->pattern = pattern;
  route->method = parse_method(pattern.substr(0, space));
  route->options = options;
  route->id = id;
  NARAD_ASSERT(route->method != Method::other, pattern);

  std::string_view rest = pattern.substr(space + 1);
  NARAD_ASSERT(is_clean(rest), pattern);
  Node* node = root_.get();
  while (!rest.empty()) {
    const std::string_view segment = take_segment(rest);
    std::unique_ptr<Node>* next = nullptr;
    if (segment.starts_with('{')) {
      NARAD_ASSERT(segment.size() > 2 && segment.ends_with('}'), pattern);
      route->params.emplace_back(segment.substr(1, segment.size() - 2));
      next = &node->parameter;
    } else {
      next = &node->literals[std::string(segment)];
    }
    if (!*next) *next = std::make_unique<Node>();
    node = next->get();
  }
  NARAD_ASSERT(route->params.size() <= RouteMatch::kParamsMax, pattern);
  const Route*& slot = node->routes[*slot_of(route->method)];
  NARAD_ASSERT(slot == nullptr, pattern);
  slot = route.get();
  routes_.push_back(std::move(route));
  return *routes_.back();
}

RouteMatch Router::match(Method method, std::string_view path) const {
  RouteMatch match;
  if (!is_clean(path)) return match;
  const Node* node = root_->find(path, match.values, 0);
  if (node != nullptr) match.route = node->route(method);
  return match;
}

Response Router::refuse(Method method, std::string_view target) const {
  const std::size_t mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  if (!is_clean(path)) {
    Response response = empty_response(301);
    std::string location;
    // Some clients take a backslash for a slash, and two slashes for the start of a host.
    for (const char c : clean_path(path)) location += c == '\\' ? "%5C" : std::string(1, c);
    if (mark != std::string_view::npos) location += target.substr(mark);
    response.headers.add("Location", location);
    return response;
  }
  std::array<std::string, RouteMatch::kParamsMax> values;
  const Node* node = root_->find(path, values, 0);
  if (node == nullptr || node->route(method) != nullptr)
    return text_response(404, "404 page not found");
  std::vector<std::string_view> allowed;
  for (const auto& [m, name] : kMethods) {
    if (node->route(m) != nullptr) allowed.push_back(name);
  }
  std::sort(allowed.begin(), allowed.end());
  std::string allow;
  for (const std::string_view name : allowed) allow += cat(allow.empty() ? "" : ", ", name);
  Response response = text_response(405, "Method Not Allowed");
  response.headers.add("Allow", allow);
  return response;
}

std::string_view RouteMatch::param(std::string_view name) const {
  NARAD_ASSERT(route != nullptr);
  for (std::size_t i = 0; i < route->params.size(); ++i) {
    if (route->params[i] == name) return values[i];
  }
  NARAD_ASSERT(false, name);
}

std::string clean_path(std::string_view path) {
  if (path.empty() || path[0] != '/') return clean_path(cat('/', path));
  std::vector<std::string_view> kept;
  const bool slash_at_end = path.ends_with('/');
  while (!path.empty()) {
    const std::string_view segment = take_segment(path);
    if (segment == "..") {
      if (!kept.empty()) kept.pop_back();
    } else if (!segment.empty() && segment != ".") {
      kept.push_back(segment);
    }
  }
  std::string out;
  for (const std::string_view segment : kept) out += cat('/', segment);
  if (out.empty() || slash_at_end) out += '/';
  return out;
}

}  // namespace narad::http

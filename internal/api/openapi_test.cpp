#include <gtest/gtest.h>

#include <set>

#include "internal/api/routes.h"
#include "internal/api/test_api.h"
#include "pkg/json/document.h"
#include "pkg/jsonschema/schema.h"

namespace narad::api {
namespace {

constexpr std::string_view kMethods[] = {"get", "post", "put", "patch", "delete"};

json::Document document() {
  auto parsed = json::Document::parse(std::string(openapi_document()), 64);
  NARAD_ASSERT(parsed.has_value(), parsed.error().text());
  return std::move(parsed.value());
}
json::Value at(json::Value object, std::string_view name) {
  auto value = object.find(name);
  NARAD_ASSERT(value.has_value(), name);
  return *value;
}

TEST(OpenApi, Document_IsServedAndIsOfVersion31) {
  Fixture f;
  const auto response = f.get("/v1/openapi.json");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body, openapi_document());
  const auto doc = document();
  EXPECT_EQ(at(doc.root(), "openapi").as_string(), "3.1.0");
  EXPECT_TRUE(at(doc.root(), "info").find("title"));
}

TEST(OpenApi, Routes_AreExactlyThoseOfTheTable) {
  std::set<std::string> documented, routed;
  const auto doc = document();
  const json::Value paths = at(doc.root(), "paths");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const json::Member path = paths.member(i);
    for (std::string_view method : kMethods) {
      if (!path.value.find(method)) continue;
      std::string name(method);
      for (char& c : name) c = static_cast<char>(c - 'a' + 'A');
      documented.insert(cat(name, " ", path.name));
    }
  }
  for (const RouteSpec& spec : route_table(Options{})) routed.emplace(spec.pattern);
  EXPECT_EQ(documented, routed);
}

TEST(OpenApi, Operations_AreComplete) {
  const auto doc = document();
  const json::Value paths = at(doc.root(), "paths");
  std::set<std::string> ids;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const json::Member path = paths.member(i);
    for (std::string_view method : kMethods) {
      const auto operation = path.value.find(method);
      if (!operation) continue;
      const std::string where = cat(method, " ", path.name);
      EXPECT_TRUE(operation->find("summary")) << where;
      EXPECT_TRUE(ids.emplace(at(*operation, "operationId").as_string()).second) << where;
      EXPECT_GT(at(*operation, "responses").size(), 0u) << where;
      // Every parameter of the path is declared.
      if (path.name.find('{') != std::string_view::npos) {
        EXPECT_TRUE(path.value.find("parameters")) << where;
      }
    }
  }
}

// Whoever must log in is told so, and everybody else is not.
TEST(OpenApi, Security_IsThatOfTheTable) {
  const auto doc = document();
  for (const RouteSpec& spec : route_table(Options{})) {
    const std::size_t space = spec.pattern.find(' ');
    std::string method(spec.pattern.substr(0, space));
    for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
    const json::Value operation =
        at(at(at(doc.root(), "paths"), spec.pattern.substr(space + 1)), method);
    const json::Value responses = at(operation, "responses");
    const bool open = spec.right == Right::anybody;
    EXPECT_EQ(operation.find("security").has_value(), open) << spec.pattern;
    EXPECT_EQ(responses.find("401").has_value(), !open) << spec.pattern;
    EXPECT_EQ(responses.find("429").has_value(), !open) << spec.pattern;
    EXPECT_EQ(responses.find("403").has_value(), !open && spec.right != Right::any_user)
        << spec.pattern;
  }
}

// Follows every "$ref" of the document.
void check_references(json::Value root, json::Value value, std::size_t& seen) {
  if (value.is(json::Kind::array)) {
    for (std::size_t i = 0; i < value.size(); ++i) check_references(root, value.element(i), seen);
  }
  if (!value.is(json::Kind::object)) return;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const json::Member m = value.member(i);
    if (m.name != "$ref") {
      check_references(root, m.value, seen);
      continue;
    }
    std::string_view rest = m.value.as_string();
    ASSERT_TRUE(rest.starts_with("#/")) << rest;
    rest.remove_prefix(2);
    json::Value target = root;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('/'), rest.size());
      const auto next = target.find(rest.substr(0, end));
      ASSERT_TRUE(next) << m.value.as_string();
      target = *next;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    ++seen;
  }
}

TEST(OpenApi, References_AllResolve) {
  const auto doc = document();
  std::size_t seen = 0;
  check_references(doc.root(), doc.root(), seen);
  EXPECT_GT(seen, 50u);
}

// The schema of one component as a JSON Schema of its own.
jsonschema::Schema component(std::string_view name) {
  const auto doc = document();
  const std::string components(at(at(doc.root(), "components"), "schemas").raw());
  auto schema =
      jsonschema::Schema::compile(cat("{\"$ref\":\"#/components/schemas/", name,
                                      "\",\"components\":{\"schemas\":", components, "}}"));
  NARAD_ASSERT(schema.has_value(), schema.error().text());
  return schema.value();
}
void expect_fits(std::string_view name, const std::string& body) {
  auto valid = component(name).validate(body);
  EXPECT_TRUE(valid) << name << ": " << valid.error().text() << "\n" << body;
}

TEST(OpenApi, Answers_FitTheirSchemas) {
  Fixture f;
  f.topic("orders");
  expect_fits("Topic", f.post("/v1/topics", R"({"name":"more"})").body);
  expect_fits("Topic", f.patch("/v1/topics/more", R"({"partitions":9})").body);
  expect_fits("TopicPage", f.get("/v1/topics").body);
  expect_fits("TopicWithStats", f.get("/v1/topics/orders").body);
  expect_fits("Error", f.get("/v1/topics/nope").body);
  f.broker.queue.push_back(leased(0, 1, 2, "k", "\xff"));
  expect_fits("Message", f.get("/v1/topics/orders/consume").body);
  f.headers["Content-Type"] = "application/x-ndjson";
  expect_fits("BatchAccepted", f.post("/v1/topics/orders/produce:batch", "{\"value\":1}").body);
  f.headers.clear();
  expect_fits("AckResults",
              f.post("/v1/topics/orders/ack:batch", R"({"mode":"ack","handles":["0:0:1"]})").body);
  const char* user =
      R"({"username":"svc","password":"pw","grants":[{"action":"produce","patterns":["a*"]}]})";
  expect_fits("NewUser", user);
  expect_fits("User", f.post("/v1/users", user).body);
  expect_fits("User", f.put("/v1/users/svc/grants", "{}").body);
  expect_fits("User", f.get("/v1/users/svc").body);
  expect_fits("Members", f.get("/v1/cluster/members").body);
  expect_fits("Status", f.get("/healthz").body);
  f.broker.ready.ready = false;
  expect_fits("NotReady", f.get("/readyz").body);
}

// What routing itself answers is plain text, and the document says so.
TEST(OpenApi, AnswersOfRouting_AreDocumented) {
  Fixture f;
  f.topic("orders");
  const auto doc = document();
  const json::Value paths = at(doc.root(), "paths");
  const json::Value components = at(at(doc.root(), "components"), "responses");
  const auto expect_documented = [&](json::Value operation, const http::Response& answer) {
    const json::Value named = at(at(operation, "responses"), std::to_string(answer.status));
    const std::string_view reference = at(named, "$ref").as_string();
    const json::Value response = at(components, reference.substr(reference.rfind('/') + 1));
    EXPECT_TRUE(at(response, "content").find(media_type(answer.content_type)))
        << answer.status << " " << answer.content_type;
  };
  for (const Errc code : {Errc::owner_down, Errc::unreachable, Errc::not_owner}) {
    f.broker.refuse_consume = Error(code, "of another node");
    f.broker.refuse_settle.insert_or_assign("0:0:1", Error(code, "of another node"));
    expect_documented(at(at(paths, "/v1/topics/{topic}/consume"), "get"),
                      f.get("/v1/topics/orders/consume"));
    expect_documented(at(at(paths, "/v1/topics/{topic}/ack"), "post"),
                      f.post("/v1/topics/orders/ack?receipt_handle=0:0:1"));
  }
}

TEST(OpenApi, Schemas_AreNotEmptyPromises) {
  EXPECT_FALSE(component("Topic").validate("{}"));
  EXPECT_FALSE(component("Message").validate(R"({"topic":1})"));
  EXPECT_FALSE(component("BatchLine").validate(R"({"value":1,"value_base64":"AA=="})"));
  EXPECT_TRUE(component("BatchLine").validate(R"({"value":null})"));
}

}  // namespace
}  // namespace narad::api

#include "pkg/http/router.h"

#include <gtest/gtest.h>
#include "pkg/http/message.h"

namespace narad::http {
namespace {

enum Ids { kList = 1, kCreate, kTopic, kPatch, kDelete, kProduce, kBatch, kConsume, kChild, kRoot };

Router narad_router() {
  Router r;
  r.add("GET /v1/topics", kList);
  r.add("POST /v1/topics", kCreate);
  r.add("GET /v1/topics/{topic}", kTopic);
  r.add("PATCH /v1/topics/{topic}", kPatch);
  r.add("DELETE /v1/topics/{topic}", kDelete);
  r.add("POST /v1/topics/{topic}/produce", kProduce);
  r.add("POST /v1/topics/{topic}/produce:batch", kBatch);
  RouteOptions consume;
  consume.serves_head = false;
  r.add("GET /v1/topics/{topic}/consume", kConsume, consume);
  r.add("DELETE /v1/topics/{parent}/children/{child}", kChild);
  r.add("GET /v1/topics/special/exact", 11);
  return r;
}

int id_of(const Router& r, Method m, std::string_view path) {
  const auto match = r.match(m, path);
  return match ? match.route->id : 0;
}

TEST(Router, MethodAndTemplate_PlaceARequest) {
  const Router r = narad_router();
  EXPECT_EQ(id_of(r, Method::get, "/v1/topics"), kList);
  EXPECT_EQ(id_of(r, Method::post, "/v1/topics"), kCreate);
  EXPECT_EQ(id_of(r, Method::patch, "/v1/topics/orders"), kPatch);
  EXPECT_EQ(id_of(r, Method::post, "/v1/topics/orders/produce"), kProduce);
  EXPECT_EQ(id_of(r, Method::post, "/v1/topics/orders/produce:batch"), kBatch);
  EXPECT_EQ(id_of(r, Method::post, "/v1/topics/orders/produce:other"), 0);
  EXPECT_EQ(id_of(r, Method::put, "/v1/topics/orders"), 0);
  EXPECT_EQ(id_of(r, Method::other, "/v1/topics/orders"), 0);
  const auto match = r.match(Method::delete_, "/v1/topics/a/children/b");
  ASSERT_TRUE(match);
  EXPECT_EQ(match.param("parent"), "a");
  EXPECT_EQ(match.param("child"), "b");
  EXPECT_EQ(match.route->pattern, "DELETE /v1/topics/{parent}/children/{child}");
}

TEST(Router, Segments_AreDecodedAfterSplitting) {
  const Router r = narad_router();
  auto match = r.match(Method::get, "/v1/topics/a%2Fb%20c+d");
  ASSERT_TRUE(match);
  EXPECT_EQ(match.param("topic"), "a/b c+d");
  EXPECT_EQ(id_of(r, Method::get, "/v1/top%69cs"), kList);
  EXPECT_EQ(id_of(r, Method::get, "/v1%2Ftopics"), 0);
  EXPECT_EQ(r.match(Method::get, "/v1/topics/%2e%2e").param("topic"), "..");
}

TEST(Router, Literals_WinAndAParameterIsTheWayBack) {
  const Router r = narad_router();
  EXPECT_EQ(id_of(r, Method::get, "/v1/topics/special/exact"), 11);
  EXPECT_EQ(r.match(Method::get, "/v1/topics/special/consume").param("topic"), "special");
  EXPECT_EQ(r.match(Method::get, "/v1/topics/special").param("topic"), "special");
}

TEST(Router, Head_IsServedByGetUnlessForbidden) {
  const Router r = narad_router();
  EXPECT_EQ(id_of(r, Method::head, "/v1/topics/orders"), kTopic);
  EXPECT_EQ(id_of(r, Method::head, "/v1/topics/orders/consume"), 0);
  EXPECT_EQ(id_of(r, Method::head, "/v1/topics/orders/produce"), 0);
}

TEST(Router, UnknownPath_Is404InPlainText) {
  const Router r = narad_router();
  for (const char* path :
       {"/", "/v1", "/v1/topics/", "/v1/topics/a/", "/v1/topics/a/b/c", "/x%2F"}) {
    EXPECT_FALSE(r.match(Method::get, path)) << path;
    const Response response = r.refuse(Method::get, path);
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(response.body, "404 page not found\n");
    EXPECT_EQ(response.content_type, "text/plain; charset=utf-8");
    EXPECT_EQ(response.headers.get("x-content-type-options"), "nosniff");
  }
}

TEST(Router, WrongMethod_Is405WithSortedAllow) {
  const Router r = narad_router();
  const Response topic = r.refuse(Method::put, "/v1/topics/orders?x=1");
  EXPECT_EQ(topic.status, 405);
  EXPECT_EQ(topic.body, "Method Not Allowed\n");
  EXPECT_EQ(topic.headers.get("Allow"), "DELETE, GET, HEAD, PATCH");
  EXPECT_EQ(r.refuse(Method::get, "/v1/topics/o/produce").headers.get("Allow"), "POST");
  EXPECT_EQ(r.refuse(Method::head, "/v1/topics/o/consume").headers.get("Allow"), "GET");
}

TEST(Router, UncleanPath_IsRedirectedToTheCleanOne) {
  const Router r = narad_router();
  const std::pair<const char*, const char*> cases[] = {
      {"//v1/topics", "/v1/topics"},
      {"/v1//topics/?limit=1", "/v1/topics/?limit=1"},
      {"/v1/./topics", "/v1/topics"},
      {"/v1/x/../topics?a=/../b", "/v1/topics?a=/../b"},
      {"/../..", "/"},
      {"/v1/topics/.", "/v1/topics"},
      {"//evil.example/..", "/"},
      {"/.//\\evil.example", "/%5Cevil.example"},
  };
  for (const auto& [from, to] : cases) {
    const Response response = r.refuse(Method::get, from);
    EXPECT_EQ(response.status, 301) << from;
    EXPECT_EQ(response.headers.get("Location"), to) << from;
  }
}

TEST(CleanPath, Clean_StaysAsItIs) {
  for (const char* path : {"/", "/a", "/a/", "/a/b.c/..d"}) EXPECT_EQ(clean_path(path), path);
  EXPECT_EQ(clean_path(""), "/");
  EXPECT_EQ(clean_path("a/b"), "/a/b");
}

TEST(Headers, NamesIgnoreCaseAndBreaksAreDropped) {
  Headers h;
  h.add("Content-Type", "text/plain");
  h.add("X-A", "1\r\nSet-Cookie: x");
  h.add("x-a", "2");
  EXPECT_EQ(h.get("content-TYPE"), "text/plain");
  EXPECT_EQ(h.get("X-a"), "1Set-Cookie: x");
  EXPECT_EQ(h.count("x-a"), 2u);
  EXPECT_EQ(h.get("X"), std::nullopt);
  Headers moved = std::move(h);
  EXPECT_EQ(moved.at(2).second, "2");
}

TEST(Response, Trap55_Errors_AreJsonWithRealEscaping) {
  const Response r = error_response(400, "bad \"name\"\n\xff");
  EXPECT_EQ(r.body, "{\"error\":\"bad \\\"name\\\"\\n\xef\xbf\xbd\"}\n");
  EXPECT_EQ(r.content_type, "application/json");
}

}  // namespace
}  // namespace narad::http

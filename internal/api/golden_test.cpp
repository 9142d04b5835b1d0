// The texts that people read, as one reviewed list: testdata/messages/api.txt.
#include <gtest/gtest.h>

#include <fstream>

#include "internal/api/test_api.h"
#include "pkg/json/document.h"

namespace narad::api {
namespace {

constexpr const char* kFile = "testdata/messages/api.txt";

// Status and text of an error answer: "404 topic not found".
std::string told(const http::Response& response) {
  auto document = json::Document::parse(response.body, 8);
  if (!document || !document.value().root().is(json::Kind::object)) return response.body;
  auto text = document.value().root().find("error");
  return cat(response.status, " ", text ? text->as_string() : response.body);
}

TEST(ErrorTexts, GoldenFile_IsWhatClientsRead) {
  std::ifstream file(kFile);
  ASSERT_TRUE(file) << "run in the source root";
  Fixture f;
  f.topic("orders");
  f.topic(
      "strict",
      R"(,"schema":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]})");
  std::size_t cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t arrow = line.rfind(" -> ");
    ASSERT_NE(arrow, std::string::npos) << line;
    const std::string request = line.substr(0, arrow);
    const std::size_t method_end = request.find(' ');
    const std::size_t target_end = std::min(request.find(' ', method_end + 1), request.size());
    const std::string body =
        target_end == request.size() ? std::string() : request.substr(target_end + 1);
    const auto response = f.call(http::parse_method(request.substr(0, method_end)),
                                 request.substr(method_end + 1, target_end - method_end - 1), body);
    EXPECT_EQ(cat(request, " -> ", told(response)), line);
    ++cases;
  }
  EXPECT_GT(cases, 50u);
  EXPECT_TRUE(f.broker.produced.empty());
  EXPECT_TRUE(f.broker.consumes.empty());
  EXPECT_TRUE(f.broker.settled.empty());
}

}  // namespace
}  // namespace narad::api

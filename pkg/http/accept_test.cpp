#include "pkg/http/accept.h"

#include <gtest/gtest.h>

#include "pkg/http/message.h"

namespace narad::http {
namespace {

std::optional<int> quality(std::string_view accept) {
  Headers headers;
  headers.add("X-Other", "application/x-ndjson");
  headers.add("ACCEPT", accept);
  return accept_quality(headers, "Accept", "application/x-ndjson");
}

TEST(Accept, NameWithoutQuality_CountsWhole) {
  EXPECT_EQ(quality("application/x-ndjson"), 1000);
  EXPECT_EQ(quality("text/html, Application/X-NDJSON;charset=utf-8 , */*"), 1000);
}

TEST(Accept, NameNotGiven_IsNothing) {
  for (const char* accept : {"", ",", "*/*", "application/*", "application/json",
                             "application/x-ndjson2", "text/html;x=\"application/x-ndjson\"",
                             "text/html;x=\"a, application/x-ndjson, \\\", b\""}) {
    EXPECT_EQ(quality(accept), std::nullopt) << accept;
  }
}

TEST(Accept, Quality_IsRead) {
  const std::pair<const char*, int> cases[] = {
      {"application/x-ndjson;q=0", 0},
      {"application/x-ndjson; q=0.0", 0},
      {"application/x-ndjson ; Q = 0.000, */*", 0},
      {"application/x-ndjson;charset=\"a;q=1\";q=0.5", 500},
      {"application/x-ndjson;q=0.125", 125},
      {"application/x-ndjson;q=1.000", 1000},
      {"application/x-ndjson;q=0, application/x-ndjson;q=0.2", 200},
      {"application/x-ndjson;q=1.9", 1000},
  };
  for (const auto& [accept, expected] : cases) EXPECT_EQ(quality(accept), expected) << accept;
}

TEST(Accept, QualityThatCannotBeRead_CountsWhole) {
  for (const char* accept :
       {"application/x-ndjson;q=", "application/x-ndjson;q=x", "application/x-ndjson;q=0.1234",
        "application/x-ndjson;q=-1", "application/x-ndjson;q=0,5;q=0", "application/x-ndjson;q=0x"})
    EXPECT_EQ(quality(accept).value_or(-1) % 1000, 0) << accept;
  EXPECT_EQ(quality("application/x-ndjson;q=0x"), 1000);
}

TEST(Accept, SeveralFields_AreOneList) {
  Headers headers;
  headers.add("Accept", "text/html");
  headers.add("accept", "application/x-ndjson;q=0.3");
  EXPECT_EQ(accept_quality(headers, "Accept", "application/x-ndjson"), 300);
}

}  // namespace
}  // namespace narad::http

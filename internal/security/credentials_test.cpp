#include "internal/security/credentials.h"

#include <gtest/gtest.h>

#include "pkg/base/text.h"

namespace narad::security {
namespace {

std::string basic(std::string_view text) { return cat("Basic ", to_base64(as_bytes(text))); }

TEST(Basic, UserAndPassword_AreReadAsTheyWereWritten) {
  struct Case {
    std::string_view user, password;
  };
  for (const Case& c : std::initializer_list<Case>{{"admin", "secret"},
                                                   {"admin", ""},
                                                   {"", "secret"},
                                                   {"a", "b:c::d"},
                                                   {"a", "\xC3\xA9 \xF0\x9F\x90\xA2"},
                                                   {"\xC3\xA9", "x"}}) {
    const auto back = parse_basic(basic_header(c.user, c.password));
    ASSERT_TRUE(back) << c.user;
    EXPECT_EQ(back->username, c.user);
    EXPECT_EQ(back->password, c.password);
  }
}

TEST(Basic, Scheme_IsReadInAnyCase) {
  for (const char* scheme : {"Basic ", "basic ", "BASIC ", "bAsIc "}) {
    EXPECT_TRUE(parse_basic(cat(scheme, "YTpi"))) << scheme;
  }
}

TEST(Basic, AnythingElse_IsNothing) {
  for (const std::string& header :
       {std::string(), std::string("Basic"), std::string("Basic "), std::string("Basic  YTpi"),
        std::string("Basic\tYTpi"), std::string("Bearer YTpi"), std::string(" Basic YTpi"),
        std::string("Basic YTpi "), std::string("Basic YTp"), std::string("Basic YTpi\n"),
        std::string("Basic YT-i"), std::string("Basic YTpi, Basic YTpi"), basic("no colon"),
        basic("a:\xff"), basic("a:\xC0\x80"), basic(std::string_view("a:b\0c", 5)), basic("a:b\n"),
        basic("a\x7f:b"), basic("\xED\xA0\x80:b")}) {
    EXPECT_FALSE(parse_basic(header)) << header;
  }
}

TEST(Basic, Length_IsBounded) {
  EXPECT_TRUE(parse_basic(basic(cat("a:", std::string(6000, 'x')))));
  EXPECT_FALSE(parse_basic(basic(cat("a:", std::string(9000, 'x')))));
}

}  // namespace
}  // namespace narad::security

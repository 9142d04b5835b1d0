#include <gtest/gtest.h>

#include "pkg/base/assert.h"
#include "pkg/base/bytes.h"
#include "pkg/base/checksum.h"
#include "pkg/base/result.h"
#include "pkg/base/text.h"
#include "pkg/base/two_slot.h"

namespace narad {
namespace {

TEST(Error, SystemErrno_MapsToTheCodeACallerActsOn) {
  EXPECT_EQ(Error::system(2, "open /x").code(), Errc::not_found);
  EXPECT_EQ(Error::system(28, "write /x").code(), Errc::unavailable);
  EXPECT_EQ(Error::system(13, "open /x").code(), Errc::forbidden);
  Error e = Error::system(28, "write /x").with_context("commit");
  EXPECT_EQ(e.text(), "commit: write /x: No space left on device");
  EXPECT_EQ(e.os_errno(), 28);
}

TEST(Result, Try_PassesTheErrorUp) {
  auto half = [](int n) -> Result<int> {
    if (n % 2 != 0) return Error(Errc::invalid_argument, "odd");
    return n / 2;
  };
  auto quarter = [&](int n) -> Result<int> {
    NARAD_TRY(auto h, half(n));
    return half(h);
  };
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().code(), Errc::invalid_argument);
}

TEST(AssertDeathTest, FailedAssertion_PrintsTheExpressionAndAborts) {
  EXPECT_DEATH(NARAD_ASSERT(1 + 1 == 3, "arithmetic"), "1 \\+ 1 == 3.*arithmetic");
}

TEST(Varint, EveryLength_RoundTrips) {
  for (unsigned bits = 0; bits < 64; ++bits) {
    for (std::uint64_t v : {(1ull << bits) - 1, 1ull << bits, (1ull << bits) + 1}) {
      Bytes b;
      ByteWriter(b).varint(v);
      EXPECT_EQ(b.size(), varint_size(v));
      ByteReader r(b);
      EXPECT_EQ(r.varint(), v);
      EXPECT_TRUE(r.ok());
      EXPECT_EQ(r.remaining(), 0u);
    }
  }
}

TEST(Varint, OverlongOrTruncated_Fails) {
  Bytes eleven(11, std::byte{0x80});
  ByteReader r(eleven);
  (void)r.varint();
  EXPECT_FALSE(r.ok());
  Bytes big(9, std::byte{0xff});
  big.push_back(std::byte{0x02});
  ByteReader r2(big);
  (void)r2.varint();
  EXPECT_FALSE(r2.ok());
  ByteReader r3(ByteView(big).first(3));
  (void)r3.varint();
  EXPECT_FALSE(r3.ok());
}

TEST(ByteReader, ShortRead_StaysFailed) {
  Bytes b(3);
  ByteReader r(b);
  EXPECT_EQ(r.u32(), 0u);
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.u8(), 0u);
  EXPECT_TRUE(r.bytes(1).empty());
}

TEST(Fnv1a, ContractVectors_Match) {
  EXPECT_EQ(fnv1a32("k"), 0xee0c38eau);
  EXPECT_EQ(fnv1a32("a"), 0xe40c292cu);
  EXPECT_EQ(fnv1a32("customer-42"), 0xfe68adbeu);
  EXPECT_EQ(fnv1a32("key-0005"), 0xc02e957cu);
  EXPECT_EQ(fnv1a32("recovery-probe"), 0x0a93ebe5u);
}

TEST(TwoSlot, TornNewestSlot_FallsBackToTheOther) {
  Bytes file(two_slot::kFileBytes);
  for (std::uint64_t seq : {1ull, 2ull}) {
    Bytes value;
    ByteWriter(value).u64(seq * 100);
    auto slot = two_slot::encode(0x1234, 7, seq, value);
    std::copy(slot.begin(), slot.end(),
              file.begin() + static_cast<std::ptrdiff_t>(two_slot::slot_offset(seq)));
  }
  auto newest = two_slot::decode(file, 0x1234, 7);
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->sequence, 2u);
  for (std::size_t i = 0; i < two_slot::kSlotBytes; ++i) {  // sequence 2 lies in slot 0
    Bytes torn = file;
    torn[i] ^= std::byte{1};
    auto got = two_slot::decode(torn, 0x1234, 7);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->sequence, 1u) << "flipped byte " << i;
  }
  EXPECT_FALSE(two_slot::decode(file, 0x1234, 8));
  EXPECT_FALSE(two_slot::decode(file, 0x1235, 7));
}

TEST(Base64, RfcVectors_RoundTrip) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
      {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}};
  for (auto [plain, coded] : cases) {
    EXPECT_EQ(to_base64(as_bytes(plain)), coded);
    ASSERT_TRUE(parse_base64(coded));
    EXPECT_EQ(to_text(*parse_base64(coded)), plain);
  }
  for (std::string_view bad : {"Zg", "Zg=", "Zh==", "Z===", "Zm9v=", "Zm 9", "=Zg="}) {
    EXPECT_FALSE(parse_base64(bad)) << bad;
  }
}

TEST(Utf8, IllFormed_IsRefused) {
  for (std::string_view good : {"", "abc", "h\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"})
    EXPECT_TRUE(is_utf8(good));
  for (std::string_view bad : {"\x80", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80",
                               "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xC3"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

TEST(JsonString, QuotesControlsAndBadUtf8_AreEscaped) {
  using std::string_view_literals::operator""sv;
  std::string out;
  append_json_string(out, "a\"b\\c\n\r\t\x01\0\x1f\x7f \u00e9\xff\xc0z\xe2\x82"sv);
  EXPECT_EQ(out,
            "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u0000\\u001f\x7f \u00e9\ufffd\ufffdz\ufffd\ufffd\"");
}

TEST(Duration, GoGrammar_ParsesAndFormats) {
  using namespace std::chrono_literals;
  EXPECT_EQ(parse_duration("1h30m").value(), 90min);
  EXPECT_EQ(parse_duration("1.5s").value(), 1500ms);
  EXPECT_EQ(parse_duration("-2us").value(), -2us);
  EXPECT_EQ(parse_duration("0").value(), 0ns);
  EXPECT_EQ(parse_duration(".5ms").value(), 500us);
  for (std::string_view bad : {"", "10", "s", "1x", "1h-2m", ".", "1..5s", "9999999999h", " 1s"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
  EXPECT_EQ(format_duration(168h), "168h0m0s");
  EXPECT_EQ(format_duration(1500ms), "1.5s");
  EXPECT_EQ(format_duration(0s), "0s");
  EXPECT_EQ(format_duration(90s), "1m30s");
  EXPECT_EQ(format_duration(250us), "250\xC2\xB5s");
}

TEST(Sizes, UnitsAndOverflow_AreHandled) {
  EXPECT_EQ(parse_bytes("64MiB").value(), 64u << 20);
  EXPECT_EQ(parse_bytes("50MB").value(), 50'000'000u);
  EXPECT_FALSE(parse_bytes("MB"));
  EXPECT_FALSE(parse_bytes("99999999999TiB"));
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
}

TEST(Rfc3339, KnownTimes_Format) {
  EXPECT_EQ(format_rfc3339(UnixMillis(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_rfc3339(UnixMillis(1783615560123)), "2026-07-09T16:46:00.123Z");
}

TEST(Hex16, AnyValue_RoundTrips) {
  EXPECT_EQ(to_hex16(0xdeadbeef), "00000000deadbeef");
  EXPECT_EQ(parse_hex16("00000000deadbeef"), 0xdeadbeefu);
  EXPECT_FALSE(parse_hex16("deadbeef"));
}

}  // namespace
}  // namespace narad

#include "cmd/narad/format.h"

#include <gtest/gtest.h>

namespace narad::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

client::Received message(std::string payload) {
  client::Received m;
  m.partition = PartitionId(2);
  m.offset = Offset(17);
  m.payload = std::move(payload);
  return m;
}

TEST(MessageLine, KeyAndTime_AreShownWhenThere) {
  client::Received m = message("{\"id\": 1}");
  EXPECT_EQ(message_line(m, 0), "[p2 @17] {\"id\": 1}\n");
  m.key = "k";
  m.timestamp_s = 1783615560;
  EXPECT_EQ(message_line(m, 0), "[p2 @17] key=k 16:46:00.000 {\"id\": 1}\n");
  EXPECT_EQ(message_line(m, 7200), "[p2 @17] key=k 18:46:00.000 {\"id\": 1}\n");
}

TEST(MessageLine, JsonStrings_AreUnquotedAndBinaryIsDumped) {
  EXPECT_EQ(message_line(message("\"a\\nb\""), 0), "[p2 @17] a\nb\n");
  EXPECT_EQ(message_line(message("plain"), 0), "[p2 @17] plain\n");
  EXPECT_EQ(message_line(message("A\xff"), 0),
            "[p2 @17] (binary, 2 bytes)\n"
            "00000000  41 ff                                             |A.|\n");
}

TEST(RawLine, TextIsQuotedAndTheRest_IsAsItWas) {
  EXPECT_EQ(raw_line(message("plain")), "\"plain\"\n");
  EXPECT_EQ(raw_line(message("{\"a\": 1}")), "{\"a\": 1}\n");
  EXPECT_EQ(raw_line(message("\xff\x01")), "\xff\x01\n");
}

TEST(Printable, ControlCharacters_AreShown) {
  EXPECT_EQ(printable("plain é ✓", false), "plain é ✓");
  EXPECT_EQ(printable("\x1b[2J\x1b]0;title\x07", true), "\\x1b[2J\\x1b]0;title\\x07");
  EXPECT_EQ(printable("a\tb\nc\rd\be\x7f", true), "a\tb\nc\\x0dd\\x08e\\x7f");
  EXPECT_EQ(printable("a\tb\nc", false), "a\\x09b\\x0ac");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m \xc2\xa0",
                      true),
            "\\u009b31m \xc2\xa0");
  EXPECT_EQ(printable("\x9b\xff"
                      "a",
                      true),
            "\\x9b\\xffa")
      << "not UTF-8";
  EXPECT_EQ(printable(std::string("a\0b", 3), true), "a\\x00b");
}

TEST(MessageLine, ForATerminal_HasNoControlCharacters) {
  client::Received m = message("\"\\u001b[31mred\\n\\u009b2J\"");
  m.key = "k\n\x1b]0;x\x07";
  EXPECT_EQ(message_line(m, 0, true),
            "[p2 @17] key=k\\x0a\\x1b]0;x\\x07 \\x1b[31mred\n\\u009b2J\n");
  EXPECT_EQ(message_line(m, 0),
            "[p2 @17] key=k\n\x1b]0;x\x07 \x1b[31mred\n\xc2\x9b"
            "2J\n");
  EXPECT_EQ(raw_line(message("{\"a\":\"\x7f\"}"), true), "{\"a\":\"\\x7f\"}\n");
  EXPECT_EQ(raw_line(message("{\"a\":\"\x7f\"}")), "{\"a\":\"\x7f\"}\n");
  EXPECT_EQ(raw_line(message("\xff\x1b"), true), "\\xff\\x1b\n");
}

TEST(HexDump, FullAndPartRows_LineUp) {
  EXPECT_EQ(hex_dump("0123456789abcdefg"),
            "00000000  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  |0123456789abcdef|\n"
            "00000010  67                                                |g|\n");
}

TEST(Durations, ShortForm_KeepsTheDigitsThatMatter) {
  EXPECT_EQ(short_duration(microseconds(1'234'567)), "1.235s");
  EXPECT_EQ(short_duration(std::chrono::nanoseconds(12'345)), "12µs");
  EXPECT_EQ(rate_text(1000, milliseconds(500)), "2000");
  EXPECT_EQ(rate_text(1, milliseconds(0)), "0");
}

TEST(Sizes, ShortForm_HasOneDigit) {
  EXPECT_EQ(short_bytes(1023), "1023B");
  EXPECT_EQ(short_bytes(1536), "1.5KiB");
  EXPECT_EQ(short_bytes(std::uint64_t{3} << 30), "3.0GiB");
}

TEST(Columns, LongText_StaysWhole) {
  EXPECT_EQ(left("ab", 4), "ab  ");
  EXPECT_EQ(right("ab", 4), "  ab");
  EXPECT_EQ(left("abcdef", 4), "abcdef");
}

}  // namespace
}  // namespace narad::cli

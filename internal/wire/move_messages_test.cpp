#include "internal/wire/move_messages.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

namespace narad::wire {
namespace {

MoveRef orders() { return {{"orders", PartitionId(3)}, Incarnation(0x1f), RaftIndex(42)}; }
Receipt receipt() {
  return {900, Offset(100), Offset(1000), 65'536, 0xfeed, 12, 3, 1, 2, 5, 6, 7, 8, 9};
}
MoveMarker marker() {
  return {RaftIndex(42),
          7,
          "narad-1",
          "narad-2",
          Incarnation(0x1f),
          Offset(1000),
          false,
          UnixMillis(1'783'615'000'123),
          UnixMillis(1'783'615'000'120),
          {{"orders-late", "00000000000000e1"}},
          receipt()};
}
// As an older destination leaves it: it does not say when the copy became durable.
MoveMarker forced() {
  MoveMarker m = marker();
  m.epoch = 0;
  m.force_promoted = true;
  m.durable_at.reset();
  m.links.clear();
  m.receipt = {};
  return m;
}
Listing listing() {
  Listing m;
  m.move_id = RaftIndex(42);
  m.incarnation = Incarnation(0x1f);
  m.log = LogId(0x10a);
  m.listed_at = UnixMillis(1'783'615'000'123);
  m.frontier = Offset(900);
  m.acked_ahead = {{Offset(901), Offset(905)}, {Offset(910), Offset(911)}};
  m.links = {{"orders-late", "00000000000000e1"}};
  m.cursors = {{"orders-late", std::string("\x00\xff cursor", 9)}};
  m.hwm = Offset(1000);
  m.segments = {{Offset(100), 65'536, true, UnixMillis(1'783'600'000'000)},
                {Offset(700), 4096, false, UnixMillis(-1)}};
  m.marker = marker();
  m.marker_age_ms = 77;
  m.bytes_per_second = 1 << 20;
  return m;
}
// As an owner of an earlier release answers: no identity, no clock, no ages, no marker.
Listing older_listing() {
  Listing m = listing();
  m.log = LogId(0);
  m.listed_at.reset();
  m.acked_ahead.clear();
  m.links.clear();
  m.cursors.clear();
  for (auto& s : m.segments) s.mtime.reset();
  m.marker.reset();
  m.marker_age_ms.reset();
  m.bytes_per_second = 0;
  return m;
}
FreezeToken token() { return {7, "00112233445566778899aabbccddeeff"}; }
FreezeRequest arm() { return {orders(), std::nullopt, std::nullopt}; }
FreezeRequest extend() { return {orders(), token(), std::nullopt}; }
FreezeRequest fence() { return {orders(), token(), Offset(1000)}; }
FreezeAnswer frozen() { return {token(), 30'000, listing()}; }
FreezeAnswer extended() { return {token(), 30'000, std::nullopt}; }
FreezeAnswer frozen_by_older() { return {std::nullopt, 30'000, older_listing()}; }
SegmentDigests digests() { return {(2u << 20) + 5, {0xfeedULL, std::nullopt, 0x1ULL}}; }
MoveReports reports() {
  MoveReport copying{orders(), "narad-1", "copying", 10, 20, 30, 40, 50, 2, 1, 0, "", ""};
  MoveReport stuck = copying;
  stuck.phase = "blocked";
  stuck.blocked = "source_went_back";
  stuck.last_error = "it lists less than \"before\"";
  return {{copying, stuck}};
}
SilenceAnswer silence() { return {120'500, 9}; }

std::vector<std::string> one_of_each() {
  return {encode(listing()),  encode(older_listing()),   encode(arm()),
          encode(extend()),   encode(fence()),           encode(frozen()),
          encode(extended()), encode(frozen_by_older()), encode(digests()),
          encode(reports()),  encode(MoveReports{}),     encode(silence())};
}
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

TEST(MoveMessages, GoldenFile_IsWhatWeWrite) {
  std::ifstream file("testdata/wire/move_messages.ndjson");
  ASSERT_TRUE(file) << "run in the source root";
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::vector<std::string> expected = one_of_each();
  for (const MoveMarker& m : {marker(), forced()}) {
    for (std::string& line : lines_of(encode_marker_file(m))) expected.push_back(std::move(line));
  }
  EXPECT_EQ(expected, lines);
}

TEST(MoveMessages, Each_RoundTrips) {
  EXPECT_EQ(decode_listing(encode(listing())).value(), listing());
  EXPECT_EQ(decode_freeze_request(encode(arm())).value(), arm());
  EXPECT_EQ(decode_freeze_request(encode(extend())).value(), extend());
  EXPECT_EQ(decode_freeze_request(encode(fence())).value(), fence());
  EXPECT_EQ(decode_freeze_answer(encode(frozen())).value(), frozen());
  EXPECT_EQ(decode_freeze_answer(encode(extended())).value(), extended());
  EXPECT_EQ(decode_segment_digests(encode(digests())).value(), digests());
  EXPECT_EQ(decode_move_reports(encode(reports())).value(), reports());
  EXPECT_EQ(decode_silence_answer(encode(silence())).value(), silence());
}

// What an older node does not say reads as not said, never as zero (AGE-6, FEN-7).
TEST(MoveMessages, FieldsOfLaterReleases_MayBeAbsent) {
  const Listing bare =
      decode_listing(
          R"({"move_id":42,"incarnation":"000000000000001f","frontier":0,"hwm":0,"segments":[]})")
          .value();
  EXPECT_EQ(bare.log, LogId(0));
  EXPECT_FALSE(bare.listed_at);
  EXPECT_FALSE(bare.marker);
  EXPECT_FALSE(bare.marker_age_ms);
  EXPECT_TRUE(bare.cursors.empty() && bare.links.empty() && bare.acked_ahead.empty());
  EXPECT_EQ(decode_listing(encode(older_listing())).value(), older_listing());
  EXPECT_EQ(decode_freeze_answer(encode(frozen_by_older())).value(), frozen_by_older());
  EXPECT_FALSE(decode_freeze_answer(R"({"ttl_ms":1})").value().token);
}

TEST(MoveMessages, UnknownFields_AreOverlooked) {
  for (const std::string& line : {encode(listing()), encode(older_listing())}) {
    std::string later = line;
    later.insert(1, R"("later":{"x":[1,2]},)");
    EXPECT_EQ(decode_listing(later).value(), decode_listing(line).value());
  }
}

std::string why(std::string_view from, std::string_view to, const std::string& body) {
  std::string text = body;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto read = decode_listing(text);
  return read ? "it was read" : read.error().text();
}

TEST(MoveMessages, WrongFields_AreNamed) {
  const auto listed = [](std::string_view from, std::string_view to) {
    return why(from, to, encode(listing()));
  };
  const std::string is = "the listing cannot be read: ";
  EXPECT_EQ(listed("\"hwm\":1000", "\"hwm\":-1"), is + "field \"hwm\" is not a whole number");
  EXPECT_EQ(listed("\"hwm\":1000", "\"hwm\":9223372036854775807"),
            is + "field \"hwm\" is too large");
  EXPECT_EQ(listed("\"hwm\":1000,", ""), is + "field \"hwm\" is missing");
  EXPECT_EQ(listed("\"begin\":910", "\"begin\":904"), is + "acked_ahead: is out of order");
  EXPECT_EQ(listed("\"begin\":901", "\"begin\":899"), is + "acked_ahead: is out of order");
  EXPECT_EQ(listed("\"end\":911", "\"end\":910"), is + "acked_ahead: is out of order");
  EXPECT_EQ(listed("\"base\":700", "\"base\":100"),
            is + "segments: field \"base\" does not ascend");
  EXPECT_EQ(listed("\"bytes\":4096", "\"bytes\":1099511627777"),
            is + "segments: field \"bytes\" is too large");
  EXPECT_EQ(listed("\"mtime_ms\":-1", "\"mtime_ms\":-9007199254740993"),
            is + "segments: field \"mtime_ms\" is no time");
  EXPECT_EQ(listed("\"epoch\":\"00000000000000e1\"", "\"epoch\":\"00000000000000E1\""),
            is + "links: field \"epoch\" is not 16 hex digits");
  EXPECT_EQ(listed("\"child\":\"orders-late\"", "\"child\":\"../orders\""),
            is + "links: field \"child\" is no topic name");
  EXPECT_EQ(listed("\"base64\":\"AP8gY3Vyc29y\"", "\"base64\":\"AP8gY3Vyc29\""),
            is + "cursors: field \"base64\" is no base64 of a cursor file");
  EXPECT_EQ(listed("\"marker_age_ms\":77", "\"marker_age_ms\":8796093022209"),
            is + "field \"marker_age_ms\" is too large");
  EXPECT_EQ(listed("\"self\":\"narad-2\"", "\"self\":\"\""),
            is + "marker: field \"self\" is empty");
}

TEST(MoveMessages, RequestsThatMakeNoSense_AreRefused) {
  const auto refused = [](const FreezeRequest& r) {
    const auto read = decode_freeze_request(encode(r));
    return read ? "" : read.error().text();
  };
  FreezeRequest r = fence();
  r.token.reset();
  EXPECT_EQ(refused(r),
            "the request to freeze cannot be read: field \"expect_hwm\" without a token");
  r = extend();
  r.token->nonce.pop_back();
  EXPECT_EQ(refused(r),
            "the request to freeze cannot be read: token: field \"nonce\" is not 32 hex digits");
  r = arm();
  r.move.partition.topic = "..";
  EXPECT_EQ(refused(r), "the request to freeze cannot be read: field \"topic\" is no topic name");
}

TEST(MoveMessages, Lengths_AreBounded) {
  Listing many = older_listing();
  many.links.assign(kSidecarsMax + 1, {"a", "00000000000000e1"});
  EXPECT_FALSE(decode_listing(encode(many)));
  many = older_listing();
  many.cursors = {{"a", std::string(kSidecarBytesMax, 'x')}};
  EXPECT_TRUE(decode_listing(encode(many)));
  many.cursors[0].bytes += 'x';
  EXPECT_FALSE(decode_listing(encode(many)));
  EXPECT_EQ(decode_listing(std::string(kMoveMessageBytesMax + 1, ' ')).error().code(),
            Errc::invalid_argument);
  MoveReports long_text = reports();
  long_text.moves[0].last_error = std::string(5000, '\xff');
  EXPECT_TRUE(decode_move_reports(encode(long_text)));
}

// Acks beyond what a listing holds are left out: they are delivered again, nothing is skipped.
TEST(MoveMessages, TooManyAckedRuns_TheFirstAreSent) {
  Listing m = older_listing();
  for (std::uint64_t i = 0; i < kAckedRunsMax + 2; ++i) {
    m.acked_ahead.push_back({Offset(1000 + 2 * i), Offset(1001 + 2 * i)});
  }
  const auto read = decode_listing(encode(m));
  ASSERT_TRUE(read);
  ASSERT_EQ(read.value().acked_ahead.size(), kAckedRunsMax);
  EXPECT_EQ(read.value().acked_ahead.back(), m.acked_ahead[kAckedRunsMax - 1]);
}

TEST(MoveMarker, File_RoundTrips_MRK_2_MRK_4_MRK_5) {
  EXPECT_EQ(decode_marker_file(encode_marker_file(marker())), marker());
  EXPECT_EQ(decode_marker_file(encode_marker_file(forced())), forced());
  EXPECT_FALSE(decode_marker_file(encode_marker_file(forced()))->durable_at);
}

TEST(MoveMarker, AnyFlippedBitAndAnyCut_IsNoMarker) {
  const std::string whole = encode_marker_file(marker());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_FALSE(decode_marker_file(std::string_view(whole).substr(0, i))) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = whole;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      // A hex digit of the checksum in the other case is the same checksum.
      const auto read = decode_marker_file(bad);
      EXPECT_TRUE(!read || *read == marker()) << i;
    }
  }
  EXPECT_FALSE(decode_marker_file(whole + "\n"));
  EXPECT_FALSE(decode_marker_file(std::string(kMarkerFileBytesMax + 1, '\n')));
}

}  // namespace
}  // namespace narad::wire

#include "internal/metastore/snapshot.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "internal/metastore/apply.h"
#include "internal/metastore/outcome.h"
#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

constexpr const char* kHash = "$2b$10$abcdefghijklmnopqrstuvABCDEFGHIJKLMNOPQRSTUVWXYZ01234";

CreateTopic creation(std::string name, std::uint64_t life) {
  CreateTopic c;
  c.name = std::move(name);
  c.incarnation = Incarnation(life);
  c.partitions = 3;
  c.visibility_timeout_ms = 30'000;
  c.max_in_flight_per_partition = 1024;
  c.max_acked_ahead_per_partition = 1024;
  c.schema = "true";
  return c;
}

// Something in every table. A table added to the state and forgotten here is caught below.
State rich() {
  State state;
  const auto run = [&](const Command& c) {
    EXPECT_TRUE(apply(state, state.applied.next(), c).done());
  };
  run(FoundCluster{"00000000000000ab"});
  for (int i = 0; i < 3; ++i) {
    run(RegisterMember{cat("n", i), "h:1", "c:1", "b", {"d1"}, UnixMillis(1)});
  }
  run(creation("orders", 7));
  run(PutSchema{"orders", Incarnation(7), 2, "{}"});
  run(creation("gone", 8));
  run(DeleteTopic{"gone", Incarnation(8)});
  run(CreateUser{"admin", kHash, {}, true, UnixMillis(5)});
  state.tombstones.put(
      std::make_shared<const Tombstone>(Tombstone{"n9", RaftIndex(3), UnixMillis(4)}));
  return state;
}

Bytes bytes_of(const State& state) {
  Bytes out;
  auto done = write_snapshot(state, [&](ByteView bytes) -> Result<void> {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return ok();
  });
  EXPECT_TRUE(done);
  return out;
}

Result<State> read_in_pieces(ByteView bytes, std::size_t piece) {
  SnapshotReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    NARAD_TRY(reader.feed(bytes.subspan(at, std::min(piece, bytes.size() - at))));
  }
  return reader.finish();
}

TEST(Snapshot, AnyPieces_GiveTheStateBack) {
  for (const State& state : {rich(), State{}}) {
    const Bytes bytes = bytes_of(state);
    for (std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, bytes.size()}) {
      auto read = read_in_pieces(bytes, piece);
      ASSERT_TRUE(read) << read.error().text();
      EXPECT_EQ(digest(read.value()), digest(state));
      check_invariants(read.value());
    }
  }
}

TEST(Snapshot, CutAnywhereOrLonger_IsRefused) {
  const Bytes bytes = bytes_of(rich());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    auto read = read_in_pieces(ByteView(bytes).first(n), 512);
    ASSERT_FALSE(read) << n;
    EXPECT_EQ(read.error().code(), Errc::data_loss);
  }
  Bytes longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read_in_pieces(longer, 512));
}

TEST(Snapshot, AnyFlippedByte_IsRefusedOrChangesTheState) {
  const Bytes bytes = bytes_of(rich());
  const std::uint64_t sum = digest(rich());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Bytes changed = bytes;
    changed[at] ^= std::byte{0x01};
    auto read = read_in_pieces(changed, 512);
    if (read) ASSERT_NE(digest(read.value()), sum) << at;
  }
}

// Written by the first release of this format: it is read for ever. A later format gets a file of
// its own beside it.
TEST(Snapshot, GoldenFile_IsReadAsItWasWritten) {
  const char* path = "testdata/metastore/snapshot.v1";
  if (std::getenv("NARAD_WRITE_GOLDEN") != nullptr) {
    const Bytes today = bytes_of(rich());
    std::ofstream(path, std::ios::binary) << as_chars(today);
  }
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto read = read_in_pieces(as_bytes(text), 100);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(digest(read.value()), digest(rich()));
}

TEST(Snapshot, WhatHoldsMovesBack_IsInIt) {
  for (const std::optional<std::uint64_t> rate : {std::optional<std::uint64_t>(0), {50'000'000}}) {
    State state = rich();
    ASSERT_TRUE(apply(state, state.applied.next(), SetMoveRate{rate}).done());
    const bool paused = rate != 0u;
    ASSERT_TRUE(apply(state, state.applied.next(), PauseMoves{"n1", true}).done());
    ASSERT_TRUE(apply(state, state.applied.next(), PauseMoves{"", paused}).done());
    auto read = read_in_pieces(bytes_of(state), 512);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read.value().move_rate, rate);
    EXPECT_EQ(read.value().moves_paused, paused);
    EXPECT_TRUE(read.value().members.find("n1")->moves_paused);
    EXPECT_EQ(read.value().versions, state.versions);
    EXPECT_EQ(digest(read.value()), digest(state));
    EXPECT_NE(digest(state), digest(rich()));
  }
}

TEST(Outcome, EveryRow_IsReadAsItWasWritten) {
  State state = rich();
  const RaftIndex at = state.applied.next();
  std::vector<CommandResult> results;
  State scratch = state;
  results.push_back(apply(scratch, at, creation("other", 9)));  // a topic
  scratch = state;
  results.push_back(
      apply(scratch, at,
            MarkUsed{"orders", Incarnation(7), PartitionId(1), "n1", "d1"}));  // an assignment
  scratch = state;
  results.push_back(apply(scratch, at, PutSchema{"orders", Incarnation(7), 3, "true"}));
  scratch = state;
  results.push_back(apply(scratch, at, SetDraining{"n1", true}));  // a member
  scratch = state;
  results.push_back(apply(scratch, at, CreateUser{"bob", kHash, {}, false, UnixMillis(1)}));
  scratch = state;
  results.push_back(apply(scratch, at, creation("orders", 9)));  // refused
  scratch = state;
  results.push_back(apply(scratch, at, Heartbeats{{"n1"}, UnixMillis(9)}));  // no row
  std::set<std::size_t> kinds;
  for (const CommandResult& r : results) {
    kinds.insert(r.row.index());
    if (std::getenv("NARAD_WRITE_GOLDEN") != nullptr) {
      std::ofstream(cat("testdata/fuzz/outcome_fuzz/row_", r.row.index(), "_", to_string(r.code)))
          << encode_outcome(Applied{at, r});
    }
    auto read = decode_outcome(encode_outcome(Applied{at, r}));
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read.value().index, at);
    EXPECT_EQ(read.value().result.code, r.code);
    EXPECT_EQ(read.value().result.text, r.text);
    EXPECT_EQ(read.value().result.row, r.row);
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<decltype(CommandResult::row)>);
}

TEST(Outcome, Errors_KeepTheirMeaningAndNonsenseIsUnknown) {
  for (Errc code : {Errc::unavailable, Errc::unknown_outcome, Errc::not_leader, Errc::too_large}) {
    auto read = decode_outcome(encode_outcome(Error(code, "why \"so\"")));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), code);
    EXPECT_EQ(read.error().text(), "why \"so\"");
  }
  for (std::string_view text :
       {"", "{", "[]", "{}", "{\"v\":2,\"error\":\"unavailable\",\"text\":\"\"}",
        "{\"v\":1,\"error\":\"sorry\",\"text\":\"\"}", "{\"v\":1,\"index\":3}",
        "{\"v\":1,\"index\":0,\"result\":{\"code\":0,\"text\":\"\",\"row\":null}}",
        "{\"v\":1,\"index\":3,\"result\":{\"code\":99,\"text\":\"\",\"row\":null}}",
        "{\"v\":1,\"index\":3,\"result\":{\"code\":0,\"text\":\"\",\"row\":{\"cow\":{}}}}"}) {
    auto read = decode_outcome(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code(), Errc::unknown_outcome) << text;
  }
}

}  // namespace
}  // namespace narad::metastore

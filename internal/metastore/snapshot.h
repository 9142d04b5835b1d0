#pragma once
// A whole state as a stream of bytes: what a snapshot of the Raft log holds. Pure.
//
//   "NRMS", version u32 = 1, then rows {table u8, length u32, JSON of codec.h}, then {255, 8, u64
//   number of rows}
//
// Rows come in the order of digest(); assignments and schemas follow their topic.
#include <functional>
#include <string>

#include "internal/metastore/state.h"
#include "pkg/base/bytes.h"
#include "pkg/base/result.h"

namespace narad::metastore {

inline constexpr std::uint32_t kSnapshotRowMax = 16u << 20;  // bytes

Result<void> write_snapshot(const State& state, const std::function<Result<void>(ByteView)>& sink);

class SnapshotReader {
 public:
  // Takes the bytes in order, in pieces of any size. data_loss if they are no snapshot.
  Result<void> feed(ByteView bytes);
  // The state, once all was fed. data_loss if something is missing.
  Result<State> finish();

 private:
  Result<void> row(std::uint8_t table, std::string_view doc);
  Result<void> close_topic();

  Bytes pending_;
  bool begun_ = false;
  bool ended_ = false;
  std::uint64_t rows_ = 0;
  State state_;
  std::shared_ptr<TopicRow> topic_;  // being read
};

}  // namespace narad::metastore

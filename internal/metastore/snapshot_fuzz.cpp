// Any bytes as a snapshot, in pieces of any size. Holds: no crash, and a state that was read is
// written and read again as itself.
#include "internal/metastore/snapshot.h"

#include <algorithm>
#include <cstdlib>

namespace {

using namespace narad;
using namespace narad::metastore;

Result<State> read(ByteView bytes, std::size_t piece) {
  SnapshotReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    NARAD_TRY(reader.feed(bytes.subspan(at, std::min(piece, bytes.size() - at))));
  }
  return reader.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  auto whole = read(bytes, std::max<std::size_t>(size, 1));
  auto pieces = read(bytes, 13);
  if (whole.has_value() != pieces.has_value()) std::abort();
  if (!whole) return 0;
  Bytes again;
  const auto sink = [&again](ByteView part) -> Result<void> {
    again.insert(again.end(), part.begin(), part.end());
    return ok();
  };
  if (!write_snapshot(whole.value(), sink)) std::abort();
  auto twice = read(again, 4096);
  if (!twice || digest(twice.value()) != digest(whole.value())) std::abort();
  return 0;
}

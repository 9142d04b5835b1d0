#include "internal/node/own_source.h"

#include <utility>

namespace narad::node {

Task<Result<wire::Listing>> OwnSource::listing(std::string, wire::MoveRef move) {
  co_return co_await source_.listing(std::move(move));
}
Task<Result<std::string>> OwnSource::chunk(std::string, wire::MoveRef move, Offset base,
                                           std::uint64_t from, std::uint64_t length) {
  co_return co_await source_.chunk(std::move(move), base, from, length);
}
Task<Result<wire::SegmentDigests>> OwnSource::digests(std::string, wire::MoveRef move,
                                                      Offset base) {
  co_return co_await source_.digests(std::move(move), base);
}
Task<Result<wire::FreezeAnswer>> OwnSource::freeze(std::string, wire::FreezeRequest request) {
  co_return co_await source_.freeze(std::move(request));
}

}  // namespace narad::node

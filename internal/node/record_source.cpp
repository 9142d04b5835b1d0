#include "internal/node/record_source.h"

namespace narad::node {

Task<Result<delivery::ReadBatch>> PartitionSource::read(Offset from, std::uint32_t records_max,
                                                        std::uint64_t bytes_max) {
  auto log = log_;  // outlives the read even if the partition is closed meanwhile
  NARAD_CO_TRY(auto batch,
               co_await log->read(from, records_max, static_cast<std::size_t>(bytes_max)));
  delivery::ReadBatch out;
  out.records = std::move(batch.records);
  out.lost.reserve(batch.lost.size());
  for (const LostRecords& lost : batch.lost) out.lost.push_back({lost.from, lost.to});
  out.next = batch.next;
  co_return out;
}

}  // namespace narad::node

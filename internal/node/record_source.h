#pragma once
// Fits a partition log to what delivery reads from.
#include <memory>

#include "internal/delivery/record_source.h"
#include "internal/partition/partition.h"

namespace narad::node {

class PartitionSource final : public delivery::RecordSource {
 public:
  explicit PartitionSource(std::shared_ptr<Partition> log) : log_(std::move(log)) {}
  delivery::LogBounds bounds() const override { return {log_->oldest(), log_->hwm()}; }
  Task<Result<delivery::ReadBatch>> read(Offset from, std::uint32_t records_max,
                                         std::uint64_t bytes_max) override;
  Event& committed() override { return log_->committed(); }

 private:
  std::shared_ptr<Partition> log_;
};

}  // namespace narad::node

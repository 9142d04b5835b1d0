#pragma once
// Where the dispatcher's records come from, declared here; internal/node connects the ingress WAL
// with SourceOf<ingress::Ingress>. Lives on the dispatcher's loop and outlives it.
#include <cstdint>
#include <utility>
#include <vector>

#include "internal/model/message.h"
#include "pkg/async/event.h"
#include "pkg/base/result.h"

namespace narad::dispatch {

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // False while the WAL is not open (its disk fails): nothing is known about its records.
  virtual bool is_open() const = 0;
  // The lowest sequence not yet handed over, as last stored or advanced.
  virtual Sequence checkpoint() const = 0;
  // One past the highest durable sequence. Only durable records are ever given out.
  virtual Sequence durable_end() const = 0;
  // Notified when it opens and when durable_end() grows.
  virtual Event& changed() = 0;
  // Durable records from `from` on, in sequence order without a gap: at least one if there is any,
  // otherwise at most `records_max` of about `bytes_max` bytes. REQUIRES: checkpoint() <= from.
  // data_loss: a durable record cannot be read back; nothing behind it may be handed over.
  virtual Task<Result<std::vector<DurableRecord>>> read(Sequence from, std::size_t records_max,
                                                        std::uint64_t bytes_max) = 0;
  // Every sequence below `checkpoint` is settled: committed, or discarded with proof. Stored some
  // time later; a crash before that replays from the older one.
  virtual void advance_checkpoint(Sequence checkpoint) = 0;
};

// Adapts an ingress to the interface. `ingress` outlives it.
template <class Ingress>
class SourceOf final : public RecordSource {
 public:
  explicit SourceOf(Ingress& ingress) : ingress_(ingress) {}
  bool is_open() const override { return ingress_.is_open(); }
  Sequence checkpoint() const override { return ingress_.checkpoint(); }
  Sequence durable_end() const override { return ingress_.durable_end(); }
  Event& changed() override { return ingress_.changed(); }
  Task<Result<std::vector<DurableRecord>>> read(Sequence from, std::size_t records_max,
                                                std::uint64_t bytes_max) override {
    return ingress_.read(from, records_max, bytes_max);
  }
  void advance_checkpoint(Sequence checkpoint) override { ingress_.advance_checkpoint(checkpoint); }

 private:
  Ingress& ingress_;
};

}  // namespace narad::dispatch

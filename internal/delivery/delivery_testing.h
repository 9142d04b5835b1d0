#pragma once
// For the tests of this directory: a log in memory that can be told how to behave.
#include <set>
#include <string>
#include <vector>

#include "internal/delivery/delivery.h"
#include "pkg/async/task.h"

namespace narad::delivery::testing {

inline const std::string kDirectory = "/p";

// What a log holds, and how its disk behaves. Outlives the process.
struct LogData {
  LogBounds bounds;
  std::vector<std::string> payloads;
  std::set<std::uint64_t> lost;
  Nanos latency{0};
  int fail_in = 0;  // the n-th read from now fails
  int reads = 0;
};

class FakeLog final : public RecordSource {
 public:
  FakeLog(Env& env, LogData& data) : env_(env), committed_(env), data_(data) {}

  LogBounds bounds() const override { return data_.bounds; }
  Event& committed() override { return committed_; }
  Task<Result<ReadBatch>> read(Offset from, std::uint32_t records_max,
                               std::uint64_t bytes_max) override {
    ++data_.reads;
    if (data_.latency > Nanos(0)) co_await sleep_for(env_, data_.latency);
    if (data_.fail_in > 0 && --data_.fail_in == 0) {
      co_return Error(Errc::unavailable, "read log: Input/output error");
    }
    if (from < data_.bounds.oldest) co_return Error(Errc::gone, "below the oldest record");
    ReadBatch out;
    std::uint64_t bytes = 0;
    out.next = from;
    while (out.next < data_.bounds.hwm && out.records.size() < records_max && bytes < bytes_max) {
      if (data_.lost.contains(out.next.value())) {
        if (out.lost.empty() || out.lost.back().end != out.next) {
          out.lost.push_back({out.next, out.next});
        }
        out.lost.back().end = out.next.next();
      } else {
        StoredRecord record;
        record.offset = out.next;
        record.payload = data_.payloads[out.next.value()];
        bytes += record.payload.size();
        out.records.push_back(std::move(record));
      }
      out.next = out.next.next();
    }
    co_return out;
  }

  void commit(std::size_t count, const std::string& payload = "record") {
    for (std::size_t n = 0; n < count; ++n) data_.payloads.push_back(payload);
    data_.bounds.hwm = Offset(data_.payloads.size());
    committed_.notify_all();
  }
  void delete_below(std::uint64_t oldest) { data_.bounds.oldest = Offset(oldest); }
  void go_back_to(std::uint64_t hwm) {
    data_.payloads.resize(hwm);
    data_.bounds.hwm = Offset(hwm);
  }

 private:
  Env& env_;
  Event committed_;
  LogData& data_;
};

}  // namespace narad::delivery::testing

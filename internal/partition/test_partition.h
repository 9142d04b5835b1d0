#pragma once
// Shared by the tests of this directory: a partition on one simulated machine.
#include <gtest/gtest.h>

#include "internal/partition/partition.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::testing {

inline constexpr Incarnation kLife{7};

inline MessagePtr message(std::uint64_t origin, std::uint64_t sequence, std::size_t bytes = 16) {
  auto m = std::make_shared<Message>();
  m->incarnation = kLife;
  m->topic = "orders";
  m->partition = PartitionId(3);
  m->key = cat("k", origin, "-", sequence);
  m->payload = cat("m", origin, "-", sequence, " ");
  m->payload.resize(std::max(bytes, m->payload.size()), '.');
  return m;
}

// Records first..last of an origin.
inline CommitBatch batch(std::uint64_t origin, std::uint64_t first, std::uint64_t last,
                         std::size_t bytes = 16) {
  CommitBatch b;
  b.incarnation = kLife;
  b.origin = OriginId(origin);
  for (std::uint64_t s = first; s <= last; ++s) {
    b.records.push_back({Sequence(s), message(origin, s, bytes)});
  }
  return b;
}

inline PartitionOptions partition_options(const std::string& directory = "/data/p00003") {
  PartitionOptions o;
  o.directory = directory;
  o.name = {"orders", PartitionId(3)};
  o.incarnation = kLife;
  o.create_if_missing = true;
  return o;
}

}  // namespace narad::testing

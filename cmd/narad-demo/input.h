#pragma once
// What the demo sends: real bytes that every Debian machine has.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace narad::demo {

struct Item {
  std::string topic;
  std::string key;
  std::string payload;  // never empty, at most 1 MiB
};

// One item per stanza of dpkg's status file: text, keyed by package name.
std::vector<Item> package_items(std::string_view status, std::string topic);

// Up to `wanted` files below `roots` that are not text, each at most 1 MiB: keyed by path. Spread
// evenly over what there is, in the order of their paths.
std::vector<Item> binary_items(const std::vector<std::string>& roots, std::size_t wanted,
                               std::string topic);

std::uint64_t bytes_of(const std::vector<Item>& items);

}  // namespace narad::demo

#pragma once
// File names within a partition directory that belong to its log. Pure.
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/ids.h"

namespace narad::seglog {

inline constexpr std::string_view kHwmName = "hwm";
inline constexpr std::string_view kSegmentSuffix = ".log";  // frames
inline constexpr std::string_view kSumSuffix = ".sum";      // digests of a sealed segment's blocks
inline constexpr std::string_view kCutSuffix = ".cut";      // what recovery cut off, kept aside
inline constexpr std::string_view kStraySuffix = ".stray";  // behind ".log": it was no segment
inline constexpr std::string_view kFreshSuffix = ".fresh";  // a copy or new segment being written

// "00000000000000000042" + suffix.
std::string log_file_name(Offset base, std::string_view suffix);
std::string segment_name(Offset base);
// The base of a name made by log_file_name with that suffix; nothing for any other name.
std::optional<Offset> parse_log_file_name(std::string_view name, std::string_view suffix);

}  // namespace narad::seglog

#pragma once
// Whole files, read in one go.
#include <string>

#include "pkg/base/result.h"

namespace narad::cli {

// Error::system ("read PATH") if it cannot be opened or read; too_large above `limit` bytes.
Result<std::string> read_whole(const std::string& path, std::size_t limit);

}  // namespace narad::cli

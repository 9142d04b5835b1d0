#include "pkg/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace narad {
void assert_failed(const char* expression, const char* file, int line, std::string_view detail) {
  std::fprintf(stderr, "narad: assertion failed: %s at %s:%d %.*s\n", expression, file, line,
               static_cast<int>(detail.size()), detail.data());
  std::fflush(stderr);
  std::abort();
}
}  // namespace narad

#pragma once
// Assertions that stay on in release builds. They state what only a bug in Narad can break; bad
// input and bad disks are errors (result.h), never asserts. A failed one prints the expression,
// the place and a text, and aborts the process (exit status 134 under a shell).
#include <string_view>

namespace narad {
[[noreturn]] void assert_failed(const char* expression, const char* file, int line,
                                std::string_view detail);
}  // namespace narad

// NARAD_ASSERT(condition) or NARAD_ASSERT(condition, text). `text` is evaluated only on failure.
#define NARAD_ASSERT(condition, ...)                                                           \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::narad::assert_failed(#condition, __FILE__, __LINE__, ::std::string_view{__VA_ARGS__}); \
  } while (false)

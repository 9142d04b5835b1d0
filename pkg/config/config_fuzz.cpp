// Configuration files: whatever the bytes, a Config or a text that says why not.
#include <cstdlib>
#include <string>

#include "pkg/config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  narad::ConfigInput input;
  input.file_text = std::string(reinterpret_cast<const char*>(data), size);
  input.file_name = "fuzz";
  auto r = narad::load_config(input);
  if (!r && !r.error().text().starts_with("config: ")) std::abort();
  return 0;
}

#include "cmd/narad/commands.h"
#include "cmd/narad/terminal.h"
#include "pkg/base/text.h"

namespace narad::cli {

std::string version_text() { return NARAD_VERSION; }

int version(const Arguments&, Terminal& terminal) {
  terminal.out(cat("narad ", version_text(), "\n"));
  return 0;
}

}  // namespace narad::cli

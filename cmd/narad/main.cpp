// Arguments in, text out: parses the words and runs what they name.
#include <openssl/crypto.h>

#include <string>
#include <vector>

#include "cmd/narad/parser.h"
#include "cmd/narad/serve_words.h"
#include "cmd/narad/terminal.h"
#include "pkg/base/text.h"

int main(int argc, char** argv) {
  using namespace narad::cli;
  // A static binary reads no configuration of a shared library.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  bool serving = !words.empty() && words[0] == "serve";
  if (serving) words = go_flag_words(words);
  Terminal terminal;
  Parsed parsed = parse(words);
  if (parsed.arguments) {
    int status = parsed.arguments->command().run(*parsed.arguments, terminal);
    return status == 0 && terminal.out_failed() ? 1 : status;
  }
  if (serving) {
    terminal.err(parsed.out);
  } else {
    terminal.out(parsed.out);
  }
  if (!parsed.err.empty()) terminal.err(narad::cat("narad: ", parsed.err, "\n"));
  return parsed.status;
}

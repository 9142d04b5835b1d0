#pragma once
// Named connections, kept in contexts.json, and which connection a command uses.
#include <map>
#include <string>

#include "cmd/narad/parser.h"
#include "pkg/base/result.h"

namespace narad::cli {

struct Connection {
  std::string server;
  std::string user;
  std::string password;
};

struct ContextStore {
  std::string current;  // empty: none
  std::map<std::string, Connection> contexts;
};

// $NARAD_CONFIG_DIR/contexts.json, else narad/contexts.json in the user's configuration directory.
Result<std::string> context_path();
// An absent file is an empty store; one that cannot be read or parsed is an error.
Result<ContextStore> load_contexts(const std::string& path);
// Directory 0700, file 0600, replaced whole.
Result<void> save_contexts(const std::string& path, const ContextStore& store);

std::string encode_contexts(const ContextStore& store);
Result<ContextStore> decode_contexts(std::string text);

// Each field by itself: flag, then NARAD_ADDR, NARAD_USER, NARAD_PASS, then the current context,
// then http://127.0.0.1:7942 without credentials. An unreadable context file is overlooked.
Connection resolve_connection(const Arguments& args);

}  // namespace narad::cli

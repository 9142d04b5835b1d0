#include "cmd/narad/commands.h"
#include "cmd/narad/contexts.h"
#include "cmd/narad/format.h"
#include "cmd/narad/session.h"
#include "pkg/base/text.h"

namespace narad::cli {
namespace {

// Loads the store, lets `change` work on it, and prints what it says.
template <class F>
int with_store(const Arguments& args, Terminal& terminal, const F& change) {
  auto outcome = [&]() -> Result<std::string> {
    NARAD_TRY(auto path, context_path());
    NARAD_TRY(auto store, load_contexts(path));
    return change(path, store);
  }();
  if (!outcome) return report(terminal, outcome.error(), args.command().manners);
  terminal.out(outcome.value());
  return 0;
}

Error unknown(const std::string& name) {
  return {Errc::not_found, cat("unknown context \"", name, "\"; narad ctx ls lists them")};
}

}  // namespace

int ctx_add(const Arguments& args, Terminal& terminal) {
  return with_store(
      args, terminal, [&](const std::string& path, ContextStore& store) -> Result<std::string> {
        if (args.text("server").empty())
          return Error(Errc::invalid_argument, "--server is required");
        const std::string& name = args.operand(0);
        store.contexts[name] = {args.text("server"), args.text("user"), args.text("password")};
        if (store.current.empty()) store.current = name;
        NARAD_TRY(save_contexts(path, store));
        return cat("context \"", name, "\" saved (current: ", store.current, ")\n");
      });
}

int ctx_select(const Arguments& args, Terminal& terminal) {
  return with_store(args, terminal,
                    [&](const std::string& path, ContextStore& store) -> Result<std::string> {
                      const std::string& name = args.operand(0);
                      if (!store.contexts.contains(name)) return unknown(name);
                      store.current = name;
                      NARAD_TRY(save_contexts(path, store));
                      return cat("current context: ", name, "\n");
                    });
}

int ctx_ls(const Arguments& args, Terminal& terminal) {
  return with_store(
      args, terminal, [&](const std::string&, ContextStore& store) -> Result<std::string> {
        if (store.contexts.empty()) {
          return std::string("no contexts; add one: narad ctx add NAME --server URL\n");
        }
        std::string out;
        for (const auto& [name, c] : store.contexts) {
          out += cat(name == store.current ? "* " : "  ", left(name, 16), ' ', left(c.server, 40),
                     " user=", c.user.empty() ? "-" : c.user, "\n");
        }
        return out;
      });
}

int ctx_rm(const Arguments& args, Terminal& terminal) {
  return with_store(args, terminal,
                    [&](const std::string& path, ContextStore& store) -> Result<std::string> {
                      const std::string& name = args.operand(0);
                      if (store.contexts.erase(name) == 0) return unknown(name);
                      if (store.current == name) store.current.clear();
                      NARAD_TRY(save_contexts(path, store));
                      return std::string();
                    });
}

}  // namespace narad::cli

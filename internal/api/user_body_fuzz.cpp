// Any bytes as the bodies that change users: what is taken obeys every rule, and is shown as it was
// given.
#include "internal/api/user_json.h"
#include "pkg/base/assert.h"
#include "pkg/json/document.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  using namespace narad::api;
  const std::string body(reinterpret_cast<const char*>(data), size);
  (void)parse_password_change(body).has_value();
  if (const auto grants = parse_grants(body)) {
    for (const Grant& g : grants.value()) NARAD_ASSERT(validate_grant(g).has_value());
    User user;
    user.username = "svc";
    user.grants = grants.value();
    user.root = grants.value().empty();
    user.created_at = user.updated_at = UnixMillis(1);
    const std::string shown = user_body(user);
    metastore::State state;
    state.users.put(std::make_shared<const User>(user));
    NARAD_ASSERT(user_list_body(state) == "[" + shown.substr(0, shown.size() - 1) + "]\n");
    const auto back = parse_grants("{\"grants\":" + [&] {
      auto document = json::Document::parse(shown, 64);
      NARAD_ASSERT(document.has_value());
      const auto list = document.value().root().find("grants");
      return list ? std::string(list->raw()) : std::string("[]");
    }() + "}");
    NARAD_ASSERT(back && back.value() == grants.value());
  }
  if (const auto user = parse_new_user(body)) {
    NARAD_ASSERT(validate_username(user.value().username).has_value());
    NARAD_ASSERT(!user.value().password.empty());
  }
  return 0;
}

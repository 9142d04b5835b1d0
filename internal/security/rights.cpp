#include "internal/security/rights.h"

#include <algorithm>

namespace narad::security {
namespace {

bool has_admin_grant(const std::vector<Grant>& grants) {
  return std::any_of(grants.begin(), grants.end(),
                     [](const Grant& g) { return g.action == GrantAction::admin; });
}

}  // namespace

std::string_view name_of(const Caller& caller) {
  return caller != nullptr ? std::string_view(caller->username) : std::string_view();
}

bool is_root(const Caller& caller) { return caller == nullptr || caller->root; }

bool is_admin(const Caller& caller) { return is_root(caller) || has_admin_grant(caller->grants); }

bool may(const Caller& caller, GrantAction action, std::string_view topic) {
  if (is_admin(caller)) return true;
  return std::any_of(caller->grants.begin(), caller->grants.end(), [&](const Grant& g) {
    return g.action == action &&
           std::any_of(g.patterns.begin(), g.patterns.end(),
                       [&](const std::string& pattern) { return pattern_matches(pattern, topic); });
  });
}

bool may_manage(const Caller& caller, const Topic* topic) {
  if (topic == nullptr || is_admin(caller)) return true;
  return !topic->owner.empty() && topic->owner == caller->username;
}

bool may_hand_out(const Caller& caller, const std::vector<Grant>& grants) {
  return is_root(caller) || (is_admin(caller) && !has_admin_grant(grants));
}

}  // namespace narad::security

#pragma once
// Who may do what (http-api 1.0.2). Pure.
//
// A Caller is who sent a request: a user, or nobody in particular if security is off, who then
// counts as root.
#include <string_view>

#include "internal/metastore/state.h"
#include "internal/model/topic.h"

namespace narad::security {

// Null: security is off. The row as it was when the request was let in.
using Caller = metastore::UserPtr;

// "" if security is off.
std::string_view name_of(const Caller& caller);
bool is_root(const Caller& caller);
// Root, or an admin grant: everything, on every topic.
bool is_admin(const Caller& caller);
// `action` on the topic: by a grant with a pattern that matches, or as admin.
bool may(const Caller& caller, GrantAction action, std::string_view topic);
// Change and delete it: admin, or its owner. `topic` null (there is none): yes, so that the 404
// shows.
bool may_manage(const Caller& caller, const Topic* topic);
// Hand these grants to somebody: admin grants by root only, others by any admin.
bool may_hand_out(const Caller& caller, const std::vector<Grant>& grants);

}  // namespace narad::security

// A pattern and a topic name, with a NUL between them: what is valid matches exactly what begins
// with it, and decides the right of the user who has it.
#include <algorithm>

#include "internal/model/names.h"
#include "internal/security/rights.h"
#include "pkg/base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t middle = std::min(text.find('\0'), text.size());
  const std::string pattern = text.substr(0, middle);
  const std::string topic = text.substr(std::min(middle + 1, text.size()));
  const Grant grant{GrantAction::consume, {pattern}};
  if (!validate_grant(grant)) return 0;
  const bool open = pattern.ends_with('*');
  const std::string prefix = open ? pattern.substr(0, pattern.size() - 1) : pattern;
  NARAD_ASSERT(prefix.find('*') == std::string::npos);
  NARAD_ASSERT(prefix.empty() || prefix == "." || prefix == ".." || validate_topic_name(prefix));
  const bool expected = open ? topic.compare(0, prefix.size(), prefix) == 0 : topic == prefix;
  NARAD_ASSERT(pattern_matches(pattern, topic) == expected);
  User user;
  user.username = "svc";
  user.grants = {grant};
  const auto caller = std::make_shared<const User>(user);
  NARAD_ASSERT(security::may(caller, GrantAction::consume, topic) == expected);
  NARAD_ASSERT(!security::may(caller, GrantAction::produce, topic));
  NARAD_ASSERT(!security::may(caller, GrantAction::admin, topic));
  return 0;
}

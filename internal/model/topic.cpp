#include "internal/model/topic.h"

#include "pkg/base/assert.h"

namespace narad {

std::string_view to_string(TopicRole role) {
  switch (role) {
    case TopicRole::standalone:
      return "standalone";
    case TopicRole::parent:
      return "parent";
    case TopicRole::child:
      return "child";
  }
  NARAD_ASSERT(false, "unknown topic role");
}

}  // namespace narad

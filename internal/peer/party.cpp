#include "internal/peer/party.h"

namespace narad::peer {

std::string_view to_string(Lane lane) {
  switch (lane) {
    case Lane::raft:
      return "raft";
    case Lane::control:
      return "control";
    case Lane::data:
      return "data";
    case Lane::bulk:
      return "bulk";
  }
  return "unknown";
}

}  // namespace narad::peer

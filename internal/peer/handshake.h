#pragma once
// Internal: the preamble as it is spoken on a stream, from both ends. Neither closes the stream nor
// watches the time: the caller cancels it, or closes the stream, when it has taken too long. What
// it says at the end is in the shared Handshake, also if it was cut off.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "internal/peer/judge.h"
#include "pkg/async/task.h"

namespace narad::peer {

struct Handshake {
  enum class End : std::uint8_t {
    lost,             // the stream ended, or time did
    refused_by_us,    // they were told why
    refused_by_them,  // they said why
    foreign,          // what came is no preamble
    proven
  };
  End end = End::lost;
  std::string step = "before its greeting";  // where it was lost
  std::string lost_by;                       // the error of the stream, if it was one
  Sender self;                               // as this node presented itself
  std::optional<Sender> who;                 // as the other end did; proven only if `end` says so
  Lane lane = Lane::control;
  // Why not: the text of the refusal (theirs is not to be trusted to be true, only to be
  // printable), or what was wrong.
  wire::RefusalCode code = wire::RefusalCode::malformed;
  std::string why;
};

// Whoever speaks holds it; taken out once the handshake has ended.
using StreamHolder = std::shared_ptr<std::unique_ptr<Stream>>;

inline constexpr const char* kNoSecret =
    "the nodes of a cluster need a common secret: set NARAD_CLUSTER_SECRET to the same value on "
    "all "
    "of them, or security.enabled to false";

struct HandshakeSide {
  std::string secret;
  const Self* self = nullptr;
};

// From the side that connected. `meant`: the node it means to reach; empty if any.
Task<void> introduce(Env& env, StreamHolder stream, HandshakeSide side, Lane lane,
                     std::string meant, std::shared_ptr<Handshake> out);

// From the side that listens. `crowded` is asked once the other end is proven: if it answers true,
// there is no room for more.
Task<void> welcome(Env& env, StreamHolder stream, HandshakeSide side, std::function<bool()> crowded,
                   std::shared_ptr<Handshake> out);

}  // namespace narad::peer

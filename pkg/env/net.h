#pragma once
// The network door: byte streams. Call on the loop; handlers complete on their executor. Each
// stream has at most one read and one write outstanding. Cancelling a read or write (slot) leaves
// the stream usable only for close().
#include <array>
#include <boost/asio/buffer.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "pkg/base/result.h"
#include "pkg/env/handlers.h"

namespace narad {

// A host (name or IP literal; empty or "0.0.0.0" or "::" when listening means every interface) and
// a port.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};
std::string to_string(const Endpoint& endpoint);         // "127.0.0.1:7942", "[::1]:80"
Result<Endpoint> parse_endpoint(std::string_view text);  // ":7942" has an empty host
bool is_loopback(const Endpoint& endpoint);              // 127.0.0.0/8, ::1, "localhost"

// A short scatter list. Beast hands out one buffer per header field; writing them one by one costs
// a factor of five.
struct ConstBuffers {
  static constexpr std::size_t kMax = 16;
  std::array<asio::const_buffer, kMax> items;
  std::size_t count = 0;
  using value_type = asio::const_buffer;
  using const_iterator = const asio::const_buffer*;
  const_iterator begin() const { return items.data(); }
  const_iterator end() const { return items.data() + count; }
  std::size_t bytes() const {
    std::size_t n = 0;
    for (const auto& b : *this) n += b.size();
    return n;
  }
};

class Stream {
 public:
  virtual ~Stream() = default;  // closes
  virtual void read_some(asio::mutable_buffer buffer, IoHandler handler) = 0;
  virtual void write_some(const ConstBuffers& buffers, IoHandler handler) = 0;
  // Tells the peer that no more bytes follow; reading goes on.
  virtual void shutdown_write() noexcept = 0;
  // Completes anything outstanding with operation_aborted.
  virtual void close() noexcept = 0;
  virtual Endpoint peer() const = 0;
};

using StreamHandler = asio::any_completion_handler<void(error_code, std::unique_ptr<Stream>)>;

class Listener {
 public:
  virtual ~Listener() = default;  // closes; an outstanding accept completes with operation_aborted
  // One outstanding accept at a time. Honours the cancellation slot.
  virtual void accept(StreamHandler handler) = 0;
  // Where it really listens (the port is known even if 0 was asked for).
  virtual Endpoint local() const = 0;
};

class Net {
 public:
  virtual ~Net() = default;
  // EADDRINUSE, EACCES and the like as Error::system. `host` must be an IP literal, empty or
  // "localhost".
  virtual Result<std::unique_ptr<Listener>> listen(const Endpoint& at) = 0;
  // Resolves and connects. Honours the cancellation slot.
  virtual void connect(const Endpoint& to, StreamHandler handler) = 0;
};

}  // namespace narad

#pragma once
// TCP. Connections have TCP_NODELAY; listeners SO_REUSEADDR. An empty host listens on IPv6 and IPv4
// at once where the kernel has both.
#include <boost/asio/io_context.hpp>
#include <memory>

#include "pkg/env/net.h"
#include "pkg/env/real/resolver.h"

namespace narad {

class RealNet final : public Net {
 public:
  explicit RealNet(asio::io_context& context, ResolverOptions resolver = {});
  ~RealNet() override;

  Result<std::unique_ptr<Listener>> listen(const Endpoint& at) override;
  // Tries the addresses of the name one after the other. Fails with the last one's error, or with
  // host_not_found or host_not_found_try_again (asio::error).
  void connect(const Endpoint& to, StreamHandler handler) override;
  // Before the loop's context ends: no lookup completes any more.
  void stop() { resolver_.stop(); }

 private:
  asio::io_context& context_;
  Resolver resolver_;
};

}  // namespace narad

#include "pkg/env/real/real_net.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <optional>

#include "pkg/base/text.h"

namespace narad {
namespace {

using asio::ip::tcp;
using LoopExecutor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<tcp, LoopExecutor>;
using Acceptor = asio::basic_socket_acceptor<tcp, LoopExecutor>;

Endpoint to_endpoint(const tcp::endpoint& from) {
  auto address = from.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  return Endpoint{address.to_string(), from.port()};
}

class RealStream final : public Stream {
 public:
  explicit RealStream(Socket socket) : socket_(std::move(socket)) {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    const auto peer = socket_.remote_endpoint(ignored);
    if (!ignored) peer_ = to_endpoint(peer);
  }

  void read_some(asio::mutable_buffer buffer, IoHandler handler) override {
    socket_.async_read_some(buffer, std::move(handler));
  }
  void write_some(const ConstBuffers& buffers, IoHandler handler) override {
    socket_.async_write_some(buffers, std::move(handler));
  }
  void shutdown_write() noexcept override {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }
  void close() noexcept override {
    error_code ignored;
    socket_.close(ignored);
  }
  Endpoint peer() const override { return peer_; }

 private:
  Socket socket_;
  Endpoint peer_;
};

class RealListener final : public Listener {
 public:
  explicit RealListener(Acceptor acceptor)
      : acceptor_(std::make_shared<Acceptor>(std::move(acceptor))) {}
  ~RealListener() override {
    error_code ignored;
    acceptor_->close(ignored);
  }

  // The handler keeps the acceptor: its slot refers to it until the handler has run, and may fire
  // after this object is gone.
  void accept(StreamHandler handler) override {
    auto executor = asio::get_associated_executor(handler);
    auto slot = asio::get_associated_cancellation_slot(handler);
    auto done = [handler = std::move(handler), kept = acceptor_](error_code ec,
                                                                 Socket socket) mutable {
      std::unique_ptr<Stream> stream;
      if (!ec) stream = std::make_unique<RealStream>(std::move(socket));
      std::move(handler)(ec, std::move(stream));
    };
    acceptor_->async_accept(
        asio::bind_cancellation_slot(slot, asio::bind_executor(executor, std::move(done))));
  }

  Endpoint local() const override {
    error_code ignored;
    return to_endpoint(acceptor_->local_endpoint(ignored));
  }

 private:
  std::shared_ptr<Acceptor> acceptor_;
};

// One connect: the addresses still to try, and who waits.
class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  Connecting(asio::io_context& context, std::uint16_t port, StreamHandler handler)
      : work_(context.get_executor()),
        port_(port),
        socket_(context),
        handler_(std::move(handler)) {}

  // The slot knows this object weakly: the handler, which this object owns, owns the slot.
  void watch_cancellation() {
    auto slot = asio::get_associated_cancellation_slot(*handler_);
    if (!slot.is_connected()) return;
    slot.assign([weak = weak_from_this()](asio::cancellation_type) {
      auto self = weak.lock();
      if (!self || !self->handler_) return;
      error_code ignored;
      self->socket_.close(ignored);
      self->finish(asio::error::operation_aborted);
    });
  }

  void start(Result<std::vector<std::string>> addresses) {
    if (!handler_) return;  // cancelled
    if (!addresses) {
      finish(addresses.error().code() == Errc::not_found
                 ? error_code(asio::error::host_not_found)
                 : error_code(asio::error::host_not_found_try_again));
      return;
    }
    addresses_ = std::move(addresses.value());
    try_next(asio::error::host_not_found);
  }

 private:
  void try_next(error_code last) {
    error_code ec;
    while (next_ < addresses_.size()) {
      const auto address = asio::ip::make_address(addresses_[next_++], ec);
      if (ec) {
        last = ec;
        continue;
      }
      socket_.close(ec);
      auto done = [self = shared_from_this()](error_code result) {
        if (!self->handler_) return;
        if (result) return self->try_next(result);
        self->finish({});
      };
      socket_.async_connect(tcp::endpoint(address, port_), std::move(done));
      return;
    }
    finish(last);
  }

  void finish(error_code ec) {
    std::unique_ptr<Stream> stream;
    if (!ec) stream = std::make_unique<RealStream>(std::move(socket_));
    StreamHandler handler(std::move(*handler_));
    handler_.reset();
    complete(std::move(handler), ec, std::move(stream));
    work_.reset();
  }

  asio::executor_work_guard<LoopExecutor> work_;
  std::uint16_t port_;
  Socket socket_;
  std::optional<StreamHandler> handler_;
  std::vector<std::string> addresses_;
  std::size_t next_ = 0;
};

}  // namespace

RealNet::RealNet(asio::io_context& context, ResolverOptions resolver)
    : context_(context), resolver_(std::move(resolver)) {}

RealNet::~RealNet() = default;

Result<std::unique_ptr<Listener>> RealNet::listen(const Endpoint& at) {
  std::vector<asio::ip::address> candidates;
  if (at.host.empty()) {
    candidates = {asio::ip::address_v6::any(), asio::ip::address_v4::any()};
  } else if (at.host == "localhost") {
    candidates = {asio::ip::address_v4::loopback()};
  } else {
    error_code ec;
    candidates = {asio::ip::make_address(at.host, ec)};
    if (ec)
      return Error(Errc::invalid_argument, cat("cannot listen on ", to_string(at), ": \"", at.host,
                                               "\" is not an IP address (use one, localhost, or no "
                                               "host at all for every interface)"));
  }
  error_code ec;
  for (const auto& address : candidates) {
    const tcp::endpoint local(address, at.port);
    Acceptor acceptor(context_);
    ec.clear();
    acceptor.open(local.protocol(), ec);
    if (!ec) acceptor.set_option(Acceptor::reuse_address(true), ec);
    if (!ec && address.is_v6())
      acceptor.set_option(asio::ip::v6_only(!address.is_unspecified()), ec);
    if (!ec) acceptor.bind(local, ec);
    if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
    if (!ec) return std::unique_ptr<Listener>(std::make_unique<RealListener>(std::move(acceptor)));
    // A kernel without IPv6 says so here; anything else is final.
    if (ec != asio::error::address_family_not_supported &&
        ec != boost::system::errc::address_not_available)
      break;
  }
  return Error::system(ec.value(), cat("listen on ", to_string(at)));
}

void RealNet::connect(const Endpoint& to, StreamHandler handler) {
  auto connecting = std::make_shared<Connecting>(context_, to.port, std::move(handler));
  connecting->watch_cancellation();
  error_code ec;
  asio::ip::make_address(to.host, ec);
  if (!ec) return connecting->start(std::vector<std::string>{to.host});
  if (to.host.empty() || to.host == "localhost")
    return connecting->start(std::vector<std::string>{"127.0.0.1", "::1"});
  // The answer comes on the resolver's thread, which may also be the one to destroy it: it holds
  // the connection only until it has been handed to the loop.
  auto answer = [connecting, &context = context_](Result<std::vector<std::string>> r) mutable {
    asio::post(context, [connecting = std::move(connecting), r = std::move(r)]() mutable {
      connecting->start(std::move(r));
    });
  };
  resolver_.resolve(to.host, std::move(answer));
}

}  // namespace narad

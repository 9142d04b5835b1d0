#include "pkg/env/real/resolver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <cstring>
#include <future>
#include <optional>

#include <gtest/gtest.h>
#include "pkg/base/text.h"
#include "pkg/env/real/real_net.h"

namespace narad {
namespace {

// A name server on loopback that knows two names and how to say no.
class NameServer {
 public:
  NameServer() {
    fd_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) std::abort();
    socklen_t n = sizeof at;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &n);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~NameServer() {
    stop_ = true;
    thread_.join();
    ::close(fd_);
  }
  std::string address() const { return cat("127.0.0.1:", port_); }

 private:
  void serve() {
    while (!stop_) {
      pollfd p{fd_, POLLIN, 0};
      if (::poll(&p, 1, 10) <= 0) continue;
      std::array<unsigned char, 512> packet{};
      sockaddr_in from{};
      socklen_t from_size = sizeof from;
      auto n = ::recvfrom(fd_, packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&from),
                          &from_size);
      if (n < 17) continue;
      auto size = static_cast<std::size_t>(n);
      const bool node = std::memcmp(&packet[12], "\x04node\x04test", 10) == 0;
      const bool loop = std::memcmp(&packet[12], "\x04loop\x04test", 10) == 0;
      const bool known = node || loop;
      if (std::memcmp(&packet[12], "\x06silent", 7) == 0) continue;
      std::size_t question_end = 12;
      while (packet[question_end] != 0) question_end += packet[question_end] + 1u;
      question_end += 5;
      const bool wants_a = packet[question_end - 3] == 1;
      packet[2] = 0x81;
      packet[3] = known ? 0x80 : 0x83;
      packet[11] = 0;  // no additional records
      size = question_end;
      if (known && wants_a) {
        packet[7] = 1;
        unsigned char answer[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 1, 2, 3};
        const unsigned char loopback[] = {127, 0, 0, 1};
        if (loop) std::memcpy(&answer[12], loopback, 4);
        std::memcpy(&packet[size], answer, sizeof answer);
        size += sizeof answer;
      }
      ::sendto(fd_, packet.data(), size, 0, reinterpret_cast<sockaddr*>(&from), from_size);
    }
  }
  int fd_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

ResolverOptions using_server(const NameServer& server) {
  ResolverOptions options;
  options.servers = server.address();
  options.timeout_ms = 200;
  options.tries = 1;
  options.read_hosts_file = false;
  return options;
}

Result<std::vector<std::string>> look_up(Resolver& resolver, const std::string& name) {
  auto promise = std::make_shared<std::promise<Result<std::vector<std::string>>>>();
  resolver.resolve(name, [promise](auto r) { promise->set_value(std::move(r)); });
  return promise->get_future().get();
}

TEST(Resolver, KnownName_GivesItsAddress) {
  NameServer server;
  Resolver resolver(using_server(server));
  for (int i = 0; i < 3; ++i) {
    auto r = look_up(resolver, "node.test");
    ASSERT_TRUE(r) << r.error().text();
    EXPECT_EQ(r.value(), std::vector<std::string>{"10.1.2.3"});
  }
}

TEST(Resolver, UnknownName_IsNotFound) {
  NameServer server;
  Resolver resolver(using_server(server));
  auto r = look_up(resolver, "other.test");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::not_found) << r.error().text();
  EXPECT_NE(r.error().text().find("other.test"), std::string::npos);
}

TEST(Resolver, SilentServer_IsUnavailableAfterTheTimeouts) {
  NameServer server;
  Resolver resolver(using_server(server));
  auto r = look_up(resolver, "silent.test");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable) << r.error().text();
}

TEST(Resolver, NameFromTheHostsFile_NeedsNoServer) {
  ResolverOptions options;
  options.servers = "127.0.0.1:9";
  Resolver resolver(options);
  auto r = look_up(resolver, "localhost");
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_FALSE(r.value().empty());
}

TEST(Resolver, StopWithLookupsOut_DropsTheirAnswers) {
  NameServer server;
  auto held = std::make_shared<int>(0);
  std::weak_ptr<int> alive = held;
  Resolver resolver(using_server(server));
  resolver.resolve("silent.test", [held = std::move(held)](auto) { ++*held; });
  resolver.stop();
  EXPECT_TRUE(alive.expired());
  resolver.resolve("node.test", [](auto) { ADD_FAILURE() << "answered after stop"; });
}

// ---- through the network door ------------------------------------------------------------------

struct Connected {
  std::optional<error_code> ec;
  std::unique_ptr<Stream> stream;
};

StreamHandler into(Connected& result, asio::io_context& context) {
  return asio::bind_executor(context, [&result](error_code ec, std::unique_ptr<Stream> stream) {
    result.ec = ec;
    result.stream = std::move(stream);
  });
}

TEST(RealNetNames, KnownName_IsConnectedTo) {
  NameServer server;
  asio::io_context context;
  RealNet net(context, using_server(server));
  auto listener = net.listen(Endpoint{"127.0.0.1", 0});
  ASSERT_TRUE(listener);
  const auto port = listener.value()->local().port;
  Connected result;
  net.connect(Endpoint{"loop.test", port}, into(result, context));
  context.run();  // kept alive by the lookup, though it runs elsewhere
  ASSERT_TRUE(result.ec);
  EXPECT_EQ(*result.ec, error_code());
  ASSERT_TRUE(result.stream);
  EXPECT_EQ(result.stream->peer(), (Endpoint{"127.0.0.1", port}));
}

TEST(RealNetNames, UnknownAndUnansweredNames_AreToldApart) {
  NameServer server;
  asio::io_context context;
  RealNet net(context, using_server(server));
  Connected unknown, silent;
  net.connect(Endpoint{"other.test", 1}, into(unknown, context));
  net.connect(Endpoint{"silent.test", 1}, into(silent, context));
  context.run();
  ASSERT_TRUE(unknown.ec && silent.ec);
  EXPECT_EQ(*unknown.ec, asio::error::host_not_found);
  EXPECT_EQ(*silent.ec, asio::error::host_not_found_try_again);
}

TEST(RealNetNames, CancelledDuringTheLookup_EndsAtOnceAndTheLateAnswerIsIgnored) {
  NameServer server;
  asio::io_context context;
  auto options = using_server(server);
  options.timeout_ms = 60'000;
  RealNet net(context, options);
  Connected result;
  asio::cancellation_signal signal;
  net.connect(Endpoint{"silent.test", 1},
              asio::bind_cancellation_slot(signal.slot(), into(result, context)));
  context.poll();
  EXPECT_FALSE(result.ec);
  signal.emit(asio::cancellation_type::terminal);
  context.restart();
  context.run();
  ASSERT_TRUE(result.ec);
  EXPECT_EQ(*result.ec, asio::error::operation_aborted);
}

}  // namespace
}  // namespace narad

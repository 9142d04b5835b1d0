#include "pkg/env/real/resolver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <future>

#include <gtest/gtest.h>
#include "pkg/base/text.h"

namespace narad {
namespace {

// A name server on loopback that knows one name and how to say no.
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
      const bool known = std::memcmp(&packet[12], "\x04node\x04test", 10) == 0;
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
        const unsigned char answer[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 1, 2, 3};
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

}  // namespace
}  // namespace narad

#include "cmd/narad/e2e/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <random>
#include <stdexcept>

#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

using namespace std::chrono_literals;

void must_run(std::vector<std::string> argv) {
  std::string line;
  for (const std::string& word : argv) line += word + " ";
  // Name spaces of other tests that end at the same time hold the kernel's lock for seconds.
  Ran ran = run(std::move(argv), {}, 60s);
  if (ran.exit.code != 0) throw std::runtime_error(line + "failed: " + ran.err);
}

sockaddr_in at(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

}  // namespace

std::string no_networks() {
  if (::geteuid() != 0) return "network namespaces need root";
  // Only what no package can give: a tool that is missing is a failure, and the first use says so.
  constexpr int kNoSuchCommand = 127;
  Ran made = run(
      {"unshare", "-n", "sh", "-c", "ip link add br0 type bridge && nft add table inet faults"});
  if (made.exit.code == 0 || made.exit.code == kNoSuchCommand) return {};
  return "this kernel makes no network namespaces: " + made.err;
}

Network::Network(std::size_t nodes) {
  if (::unshare(CLONE_NEWNET) != 0) throw std::runtime_error("unshare");
  must_run({"ip", "link", "set", "lo", "up"});
  must_run({"ip", "link", "add", "br0", "type", "bridge"});
  must_run({"ip", "link", "set", "br0", "up"});
  must_run({"ip", "addr", "add", "10.77.0.254/24", "dev", "br0"});
  for (std::size_t i = 0; i < nodes; ++i) {
    must_run({"ip", "addr", "add", relay_address(i) + "/24", "dev", "br0"});
    holders_.push_back(std::make_unique<Child>(
        std::vector<std::string>{"unshare", "-n", "sh", "-c", "echo there; exec sleep 86400"}));
    if (!holders_.back()->line_with("there", 10s)) throw std::runtime_error("unshare -n");
    must_run({"ip", "link", "add", cat("v", i), "type", "veth", "peer", "name", cat("e", i)});
    must_run({"ip", "link", "set", cat("e", i), "netns", cat(holders_.back()->pid())});
    must_run({"ip", "link", "set", cat("v", i), "master", "br0", "up"});
    const auto inner = [&](std::vector<std::string> command) {
      std::vector<std::string> argv = inside(i);
      argv.insert(argv.end(), command.begin(), command.end());
      must_run(std::move(argv));
    };
    inner({"ip", "link", "set", "lo", "up"});
    inner({"ip", "addr", "add", address(i) + "/24", "dev", cat("e", i)});
    inner({"ip", "link", "set", cat("e", i), "up"});
    inner({"nft", "add", "table", "inet", "faults"});
    inner({"nft", "add chain inet faults in { type filter hook input priority 0; }"});
  }
}

std::string Network::address(std::size_t node) { return cat("10.77.0.", node + 1); }
std::string Network::relay_address(std::size_t node) { return cat("10.77.0.", node + 101); }

std::vector<std::string> Network::inside(std::size_t node) const {
  return {"nsenter", cat("--net=/proc/", holders_.at(node)->pid(), "/ns/net"), "--"};
}

void Network::rule(std::size_t node, const std::string& text) {
  std::vector<std::string> argv = inside(node);
  argv.insert(argv.end(), {"nft", text});
  must_run(std::move(argv));
}

void Network::cut(std::size_t from, std::size_t to) {
  rule(to, cat("add rule inet faults in ip saddr ", address(from), " drop"));
}

void Network::lose(std::size_t node, int percent) {
  rule(node, cat("add rule inet faults in ip saddr != 10.77.0.254 numgen random mod 100 < ",
                 percent, " drop"));
}

void Network::reset(std::size_t node) {
  rule(node,
       "add rule inet faults in ip saddr != 10.77.0.254 ip protocol tcp reject with tcp reset");
}

void Network::heal(std::size_t node) { rule(node, "flush chain inet faults in"); }

// ---- the relay
// -----------------------------------------------------------------------------------

DelayingRelay::DelayingRelay(std::size_t nodes, std::uint16_t port, Duration delay, Duration jitter)
    : port_(port), delay_ms_(delay.count()), jitter_ms_(jitter.count()) {
  for (std::size_t i = 0; i < nodes; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in here = at(Network::relay_address(i), port);
    if (::bind(fd, reinterpret_cast<sockaddr*>(&here), sizeof here) != 0 || ::listen(fd, 64) != 0) {
      throw std::runtime_error("the relay cannot listen");
    }
    listeners_.push_back(fd);
    threads_.emplace_back([this, fd, i] { serve(fd, Network::address(i)); });
  }
}

DelayingRelay::~DelayingRelay() {
  stop_ = true;
  for (auto& thread : threads_) thread.join();
  for (int fd : listeners_) ::close(fd);
}

void DelayingRelay::set(Duration delay, Duration jitter) {
  delay_ms_ = delay.count();
  jitter_ms_ = jitter.count();
}

void DelayingRelay::serve(int listener, std::string to) {
  std::vector<std::thread> pumps;
  while (!stop_) {
    pollfd p{listener, POLLIN, 0};
    if (::poll(&p, 1, 50) <= 0) continue;
    const int near = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (near < 0) continue;
    const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in there = at(to, port_);
    if (::connect(far, reinterpret_cast<sockaddr*>(&there), sizeof there) != 0) {
      ::close(near);
      ::close(far);
      continue;
    }
    const int on = 1;
    ::setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pumps.emplace_back([this, near, far] { pump(near, far); });
  }
  for (auto& pump : pumps) pump.join();
}

// Both directions of one connection, in order, each chunk when its time has come.
void DelayingRelay::pump(int near, int far) {
  struct Chunk {
    Clock::time_point due;
    std::string bytes;  // empty: the end
  };
  struct Way {
    int from, to;
    std::deque<Chunk> queue;
    bool ended = false;
  };
  Way ways[2] = {{near, far, {}, false}, {far, near, {}, false}};
  std::minstd_rand random(static_cast<unsigned>(near * 1000 + far));
  bool broken = false;
  while (!stop_ && !broken &&
         !(ways[0].ended && ways[1].ended && ways[0].queue.empty() && ways[1].queue.empty())) {
    pollfd p[2] = {{near, static_cast<short>(ways[0].ended ? 0 : POLLIN), 0},
                   {far, static_cast<short>(ways[1].ended ? 0 : POLLIN), 0}};
    ::poll(p, 2, ways[0].queue.empty() && ways[1].queue.empty() ? 50 : 1);
    for (int w = 0; w < 2; ++w) {
      Way& way = ways[w];
      if (!way.ended && (p[w].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        char buffer[65536];
        const ssize_t n = ::recv(way.from, buffer, sizeof buffer, 0);
        way.ended = n <= 0;
        auto due = Clock::now() + std::chrono::milliseconds(delay_ms_);
        if (jitter_ms_ > 0) {
          due += std::chrono::milliseconds(static_cast<std::int64_t>(random()) % jitter_ms_);
        }
        if (!way.queue.empty()) due = std::max(due, way.queue.back().due);
        way.queue.push_back({due, std::string(buffer, n > 0 ? static_cast<std::size_t>(n) : 0)});
      }
      while (!way.queue.empty() && way.queue.front().due <= Clock::now()) {
        const std::string bytes = std::move(way.queue.front().bytes);
        way.queue.pop_front();
        if (bytes.empty()) ::shutdown(way.to, SHUT_WR);
        for (std::size_t sent = 0; sent < bytes.size() && !broken;) {
          const ssize_t n = ::send(way.to, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
          if (n <= 0) broken = true;
          if (n > 0) sent += static_cast<std::size_t>(n);
        }
      }
    }
  }
  ::close(near);
  ::close(far);
}

}  // namespace narad::e2e

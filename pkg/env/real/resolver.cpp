#include "pkg/env/real/resolver.h"

#include <ares.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/env/real/thread.h"

namespace narad {

struct Resolver::Lookup {
  std::string name;
  Answer answer;
};

namespace {

std::string to_literal(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  else if (address->sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (bytes == nullptr ||
      ::inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr)
    return {};
  return text.data();
}

Error lookup_error(const std::string& name, int status) {
  const bool absent = status == ARES_ENOTFOUND || status == ARES_ENODATA ||
                      status == ARES_EBADNAME || status == ARES_ENONAME;
  return Error(absent ? Errc::not_found : Errc::unavailable,
               cat("look up \"", name, "\": ", ares_strerror(status)));
}

}  // namespace

// One c-ares channel and the lookups on it.
struct Resolver::Channel {
  struct Query {
    Channel* owner;
    std::string name;
    Answer answer;
  };

  explicit Channel(const ResolverOptions& options) {
    ares_options o{};
    o.timeout = options.timeout_ms;
    o.tries = options.tries;
    std::string lookups = options.read_hosts_file ? "fb" : "b";
    o.lookups = lookups.data();
    status =
        ares_init_options(&channel, &o, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS);
    if (status == ARES_SUCCESS && !options.servers.empty())
      status = ares_set_servers_ports_csv(channel, options.servers.c_str());
  }
  ~Channel() {
    closing = true;
    if (channel != nullptr) ares_destroy(channel);  // ends every query
  }

  void start(Lookup lookup) {
    if (status != ARES_SUCCESS) {
      lookup.answer(lookup_error(lookup.name, status));
      return;
    }
    auto query =
        std::make_unique<Query>(Query{this, std::move(lookup.name), std::move(lookup.answer)});
    ++running;
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    const char* name = query->name.c_str();
    ares_getaddrinfo(channel, name, nullptr, &hints, &Channel::done, query.release());
  }

  static void done(void* arg, int status, int, ares_addrinfo* found) {
    std::unique_ptr<Query> query(static_cast<Query*>(arg));
    std::unique_ptr<ares_addrinfo, decltype(&ares_freeaddrinfo)> result(found, &ares_freeaddrinfo);
    --query->owner->running;
    if (query->owner->closing) return;
    std::vector<std::string> addresses;
    if (status == ARES_SUCCESS && result) {
      for (const auto* node = result->nodes; node != nullptr; node = node->ai_next) {
        std::string literal = to_literal(node->ai_addr);
        // The list repeats an address per socket type.
        if (!literal.empty() &&
            std::find(addresses.begin(), addresses.end(), literal) == addresses.end())
          addresses.push_back(std::move(literal));
      }
      if (addresses.empty()) status = ARES_ENODATA;
    }
    if (status == ARES_SUCCESS)
      query->answer(std::move(addresses));
    else
      query->answer(lookup_error(query->name, status));
  }

  // Waits for the network, a time-out of a query, or wake_fd.
  void poll_once(int wake_fd) {
    std::array<ares_socket_t, ARES_GETSOCK_MAXNUM> sockets{};
    const int bits = ares_getsock(channel, sockets.data(), static_cast<int>(sockets.size()));
    std::array<pollfd, ARES_GETSOCK_MAXNUM + 1> fds{};
    nfds_t count = 0;
    fds[count++] = pollfd{wake_fd, POLLIN, 0};
    for (unsigned i = 0; i < sockets.size(); ++i) {
      short events = 0;
      if (ARES_GETSOCK_READABLE(bits, i)) events |= POLLIN;
      if (ARES_GETSOCK_WRITABLE(bits, i)) events |= POLLOUT;
      if (events != 0) fds[count++] = pollfd{sockets[i], events, 0};
    }
    timeval limit{1, 0};
    timeval wait{};
    const timeval* next = ares_timeout(channel, &limit, &wait);
    const int wait_ms = static_cast<int>(next->tv_sec * 1000 + next->tv_usec / 1000 + 1);
    const int ready = ::poll(fds.data(), count, wait_ms);
    if (ready <= 0) {
      ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // time-outs
      return;
    }
    for (nfds_t i = 1; i < count; ++i) {
      const auto got = fds[i].revents;
      if (got == 0) continue;
      const bool readable = (got & (POLLIN | POLLERR | POLLHUP)) != 0;
      const bool writable = (got & POLLOUT) != 0;
      ares_process_fd(channel, readable ? fds[i].fd : ARES_SOCKET_BAD,
                      writable ? fds[i].fd : ARES_SOCKET_BAD);
    }
  }

  ares_channel channel = nullptr;
  int status = ARES_SUCCESS;
  std::size_t running = 0;
  bool closing = false;
};

Resolver::Resolver(ResolverOptions options) : options_(std::move(options)) {
  static const int initialised = ares_library_init(ARES_LIB_INIT_ALL);
  NARAD_ASSERT(initialised == ARES_SUCCESS, "c-ares does not start");
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  NARAD_ASSERT(wake_fd_ >= 0, "eventfd failed");
}

Resolver::~Resolver() {
  stop();
  ::close(wake_fd_);
}

void Resolver::resolve(std::string name, Answer answer) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  waiting_.push_back(Lookup{std::move(name), std::move(answer)});
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  ::eventfd_write(wake_fd_, 1);
}

void Resolver::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ::eventfd_write(wake_fd_, 1);
  }
  if (thread_.joinable()) thread_.join();
  waiting_.clear();
}

void Resolver::work() {
  prepare_thread("narad-dns");
  std::unique_ptr<Channel> channel;
  for (;;) {
    std::deque<Lookup> fresh;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) break;
      fresh.swap(waiting_);
    }
    if (!fresh.empty() && !channel) channel = std::make_unique<Channel>(options_);
    for (auto& lookup : fresh) channel->start(std::move(lookup));
    if (channel && channel->running == 0) channel.reset();
    if (channel) {
      channel->poll_once(wake_fd_);
    } else {
      pollfd idle{wake_fd_, POLLIN, 0};
      ::poll(&idle, 1, -1);
    }
    eventfd_t count = 0;
    ::eventfd_read(wake_fd_, &count);
  }
}

}  // namespace narad

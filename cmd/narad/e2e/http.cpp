#include "cmd/narad/e2e/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace narad::e2e {

Http::~Http() { disconnect(); }

void Http::disconnect() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  buffer_.clear();
}

bool Http::connect() {
  if (fd_ >= 0) return true;
  buffer_.clear();
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port_);
  ::inet_pton(AF_INET, host_.c_str(), &at.sin_addr);
  // Before connecting: Linux bounds that by the time for sending.
  timeval limit{limit_s_, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) {
    disconnect();
    return false;
  }
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return true;
}

bool Http::send(const std::string& bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

bool Http::fill() {
  char chunk[65536];
  const ssize_t n = ::recv(fd_, chunk, sizeof chunk, 0);
  if (n <= 0) return false;
  buffer_.append(chunk, static_cast<std::size_t>(n));
  return true;
}

std::optional<Answer> Http::request(const std::string& method, const std::string& target,
                                    const std::string& body, const Headers& headers) {
  if (!connect()) return std::nullopt;
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n";
  for (const auto& [name, value] : headers_) text += name + ": " + value + "\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  if (!body.empty() || method != "GET")
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  text += "\r\n" + body;
  const auto broken = [&]() -> std::optional<Answer> {
    disconnect();
    return std::nullopt;
  };
  if (!send(text)) return broken();
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill()) return broken();
  }
  Answer answer;
  answer.status = std::atoi(buffer_.substr(9, 3).c_str());
  std::size_t at = buffer_.find("\r\n") + 2;
  while (at < end) {
    const std::size_t stop = buffer_.find("\r\n", at);
    const std::string line = buffer_.substr(at, stop - at);
    const std::size_t colon = line.find(':');
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    std::size_t value = colon + 1;
    while (value < line.size() && line[value] == ' ') ++value;
    answer.headers[name] = line.substr(value);
    at = stop + 2;
  }
  buffer_.erase(0, end + 4);
  std::size_t length = 0;
  if (auto it = answer.headers.find("content-length");
      it != answer.headers.end() && method != "HEAD") {
    length = std::strtoull(it->second.c_str(), nullptr, 10);
  }
  while (buffer_.size() < length) {
    if (!fill()) return broken();
  }
  answer.body = buffer_.substr(0, length);
  buffer_.erase(0, length);
  if (auto it = answer.headers.find("connection");
      it != answer.headers.end() && it->second == "close") {
    disconnect();
  }
  return answer;
}

std::string Http::raw(const std::string& bytes, int wait_ms) {
  disconnect();
  if (!connect()) return "";
  send(bytes);
  for (;;) {
    pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, wait_ms) <= 0 || !fill()) break;
  }
  std::string got = buffer_;
  disconnect();
  return got;
}

std::string url_encode(const std::string& text) {
  static const char* digits = "0123456789ABCDEF";
  std::string out;
  for (unsigned char c : text) {
    if (std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~') {
      out += static_cast<char>(c);
    } else {
      out += '%';
      out += digits[c >> 4];
      out += digits[c & 15];
    }
  }
  return out;
}

}  // namespace narad::e2e

#pragma once
// A plain blocking HTTP/1.1 client of the tests: its own few lines, so that a bug in the product's
// client cannot hide one in the server.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace narad::e2e {

struct Answer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class Http {
 public:
  explicit Http(std::uint16_t port, std::string host = "127.0.0.1")
      : port_(port), host_(std::move(host)) {}
  Http(const Http&) = delete;
  ~Http();

  using Headers = std::vector<std::pair<std::string, std::string>>;
  // Nothing if the connection failed or broke before the whole answer was there: the outcome of the
  // request is unknown then. Never sends twice.
  std::optional<Answer> request(const std::string& method, const std::string& target,
                                const std::string& body = "", const Headers& headers = {});
  std::optional<Answer> get(const std::string& target) { return request("GET", target); }
  std::optional<Answer> post(const std::string& target, const std::string& body = "") {
    return request("POST", target, body);
  }
  // How long a call may take in all; 60 s unless it is set.
  void set_limit(int seconds) { limit_s_ = seconds; }
  // Sent with every request, for example a login.
  void set_headers(Headers headers) { headers_ = std::move(headers); }
  // Raw bytes in, everything until the server closes or `wait_ms` pass out.
  std::string raw(const std::string& bytes, int wait_ms);
  void disconnect();

 private:
  bool connect();
  bool send(const std::string& bytes);
  bool fill();  // reads more into buffer_
  std::uint16_t port_;
  std::string host_;  // an IPv4 address
  int fd_ = -1;
  std::string buffer_;
  Headers headers_;
  int limit_s_ = 60;
};

std::string url_encode(const std::string& text);

}  // namespace narad::e2e

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
  explicit Http(std::uint16_t port) : port_(port) {}
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
  // Raw bytes in, everything until the server closes or `wait_ms` pass out.
  std::string raw(const std::string& bytes, int wait_ms);
  void disconnect();

 private:
  bool connect();
  bool send(const std::string& bytes);
  bool fill();  // reads more into buffer_
  std::uint16_t port_;
  int fd_ = -1;
  std::string buffer_;
};

std::string url_encode(const std::string& text);

}  // namespace narad::e2e

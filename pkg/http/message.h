#pragma once
// Plain HTTP messages: what a handler gets and what it answers. Values: cheap to move, owned by
// whoever holds them, no reference to the connection they came from.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/error.h"
#include "pkg/http/router.h"

namespace narad {
struct Endpoint;
}

namespace narad::http {

// Fields in the order they came or were added. Names compare without regard to case.
class Headers {
 public:
  // REQUIRES for messages we send: a token as name, and no CR, LF or NUL in the value (add() drops
  // such characters, so that no input can split a response).
  void add(std::string_view name, std::string_view value);
  // The first field of that name.
  std::optional<std::string_view> get(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  std::size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }
  // Field number `i`: name and value.
  std::pair<std::string_view, std::string_view> at(std::size_t i) const;
  void clear();
  void reserve(std::size_t fields, std::size_t bytes);

 private:
  struct Field {
    std::uint32_t begin;  // of the name, in text_; the value follows it
    std::uint32_t name_bytes;
    std::uint32_t value_bytes;
  };
  std::string text_;
  std::vector<Field> fields_;
};

struct Request {
  Method method = Method::other;
  std::string target;  // origin form, still encoded: "/v1/topics/a%20b?limit=1"
  Headers headers;
  std::string body;                      // whole, chunked coding removed
  bool body_too_large = false;           // see RouteOptions::handler_refuses_large; body is empty
  std::shared_ptr<const Endpoint> peer;  // never null in a handler
  // What Server::serve() was given with the connection: who the peer has proven to be.
  std::shared_ptr<const void> context;
  RouteMatch match;  // filled by the admission callback (server.h) with Router

  std::string_view path() const;   // of target, still encoded
  std::string_view query() const;  // of target, after '?', still encoded; see query.h
};

struct Response {
  int status = 200;
  std::string body;
  // Sent when there is a body or a HEAD stands for one. Points to a literal; for a computed type
  // leave it empty and add the header.
  std::string_view content_type = "application/json";
  Headers headers;     // besides Content-Type, Content-Length and Connection
  bool close = false;  // end the connection after this response
};

// 2xx JSON answer; `body` ends with '\n'.
Response json_response(int status, std::string body);
// No body (202, 204, 304).
Response empty_response(int status);
// {"error":"<message>"} and a newline. Bytes of `message` that are not UTF-8 become U+FFFD.
Response error_response(int status, std::string_view message);
// text/plain, nosniff, newline added: how the routing layer itself answers.
Response text_response(int status, std::string_view message);

// "Not Found"; "Unknown" for a code without a name.
std::string_view reason_phrase(int status);

}  // namespace narad::http

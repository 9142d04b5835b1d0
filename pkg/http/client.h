#pragma once
// An HTTP/1.1 client over the network door, with a pool of kept-alive connections per endpoint.
// One object per kind of use; lives on one loop.
#include <cstdint>
#include <memory>
#include <string>

#include "pkg/async/timeout.h"
#include "pkg/http/message.h"

namespace narad::http {

struct ClientOptions {
  std::size_t idle_max = 8;                       // kept per endpoint
  Nanos idle_timeout = std::chrono::seconds(30);  // shorter than any server's
  std::size_t header_bytes_max = 64 * 1024;       // of a response
  std::uint64_t body_bytes_max = std::uint64_t{64} << 20;
};

struct ClientRequest {
  ClientRequest() = default;
  ClientRequest(Method m, std::string t) : method(m), target(std::move(t)) {}
  Method method = Method::get;
  std::string target = "/";  // origin form, encoded (encode_component in query.h)
  Headers headers;           // besides Host, Content-Length and Connection
  std::string body;
  // May be sent twice. Then a kept-alive connection that turns out to be dead before the first
  // byte of the answer is replaced, once, by a fresh one.
  bool repeatable = false;
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;
};

struct Exchange;

class Client {
 public:
  explicit Client(Env& env, ClientOptions options = {});
  Client(const Client&) = delete;
  ~Client();

  // One exchange, within `deadline`. Errors: unavailable if not one byte of the request was sent
  // (connect failed, or the deadline passed before); unknown_outcome if it was and the answer did
  // not come whole; too_large or data_loss for an answer over the limits or malformed.
  // Cancellation is passed on. Any status is a success here.
  Task<Result<ClientResponse>> request(Endpoint to, ClientRequest request, Deadline deadline);

  // Closes idle connections; those in use close when their request ends. Usable afterwards.
  void close_idle();
  std::size_t idle() const;

 private:
  struct State;
  static Task<void> exchange(std::shared_ptr<State> state, Endpoint to,
                             std::shared_ptr<const ClientRequest> request,
                             std::shared_ptr<Exchange> progress);
  std::shared_ptr<State> state_;
};

// The value of an Authorization header.
std::string basic_authorization(std::string_view user, std::string_view password);

}  // namespace narad::http

#pragma once
// Internal to clients (this directory's, and those that open connections in a way of their own):
// one request and its answer over a connection that is open.
#include <memory>
#include <optional>

#include "pkg/http/buffered_stream.h"
#include "pkg/http/client.h"

namespace narad::http {

// How an exchange went. It outlives a cancelled one, and then still tells whether it was sent.
struct Exchange {
  bool sent = false;      // a byte of the request may have reached the peer
  bool answered = false;  // a byte of an answer arrived
  bool reusable = false;  // the connection may carry another one
  std::optional<ClientResponse> response;
  std::optional<Error> error;  // too_large, data_loss: what is wrong with the answer
};

// Sends and receives. Ends with a response, with an error, or with neither: then the connection was
// lost, see lost_connection(). Throws if cancelled before. The caller closes the connection unless
// it is reusable. REQUIRES: is_sendable(request->target).
Task<void> exchange_on(std::shared_ptr<BufferedStream> wire, ClientOptions options, Endpoint to,
                       std::shared_ptr<const ClientRequest> request,
                       std::shared_ptr<Exchange> exchange);

// unknown_outcome if something was sent, else unavailable.
Error lost_connection(const Endpoint& to, const Exchange& exchange);

// Visible ASCII and above, from '/': nothing that could end the request line.
bool is_sendable(std::string_view target);

}  // namespace narad::http

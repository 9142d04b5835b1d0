#pragma once
// TLS over any Stream, by OpenSSL, and a network door whose streams are all TLS: for the cluster
// plane (mutual) and for listeners of clients (certificate and key only).
//
//   auto context = TlsContext::load({cert, key, ca});
//   TlsNet net(runtime.env().net, runtime.env().executor, context.value());
//
// The handshake happens within the first read or write, so that accepting never waits for a slow
// client; whoever serves the stream watches the time anyway. A peer's certificate is checked
// against the CA and its dates, not against a name: nodes are known by addresses that change, and
// prove who they are in the preamble. The end of a stream without TLS's own farewell reads as a
// reset.
#include <memory>
#include <string>

#include "pkg/env/net.h"

namespace narad {

struct Env;

struct TlsFiles {
  std::string cert_file;  // PEM: the certificate, then any intermediate ones
  std::string key_file;   // PEM, without a passphrase
  std::string ca_file;    // PEM: whom to believe; empty if the other side need not prove itself
};

// Immutable once loaded; shared by all streams made with it.
class TlsContext {
 public:
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;

  // Reads the files (blocks). With a ca_file both sides must show a certificate and TLS is 1.3;
  // else only the listening side does, and TLS is at least 1.2. invalid_argument, with the file and
  // what is wrong with it.
  static Result<std::shared_ptr<const TlsContext>> load(const TlsFiles& files);

  void* native() const { return context_; }  // SSL_CTX

 private:
  explicit TlsContext(void* context) : context_(context) {}
  void* context_;
};

enum class TlsSide : std::uint8_t { connects, accepts };

// `executor`: of the loop on which the stream is used.
std::unique_ptr<Stream> make_tls_stream(std::unique_ptr<Stream> under,
                                        asio::any_io_executor executor,
                                        std::shared_ptr<const TlsContext> context, TlsSide side);

class TlsNet final : public Net {
 public:
  // `under` outlives this and its listeners.
  TlsNet(Net& under, asio::any_io_executor executor, std::shared_ptr<const TlsContext> context);

  Result<std::unique_ptr<Listener>> listen(const Endpoint& at) override;
  void connect(const Endpoint& to, StreamHandler handler) override;

  // For connections from now on; those that are open keep theirs.
  void replace(std::shared_ptr<const TlsContext> context) { *context_ = std::move(context); }

 private:
  using Current = std::shared_ptr<std::shared_ptr<const TlsContext>>;
  friend class TlsListener;
  Net& under_;
  asio::any_io_executor executor_;
  Current context_;
};

// The same doors with another one to the network.
Env with_net(const Env& env, Net& net);

}  // namespace narad

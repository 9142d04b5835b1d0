#include "pkg/env/real/tls.h"

#include <unistd.h>

#include <fstream>

#include <gtest/gtest.h>
#include "pkg/async/stream_io.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/env/real/runtime.h"
#include "pkg/env/real/test_certificates.h"

namespace narad {
namespace {

using std::chrono::seconds;
using testing::CertificateAuthority;

std::shared_ptr<const TlsContext> load(const TlsFiles& files) {
  auto context = TlsContext::load(files);
  EXPECT_TRUE(context) << context.error().text();
  return context.value();
}

// What one connection did.
struct Ends {
  std::string heard;     // by the listening side
  std::string answered;  // to the connecting side
  error_code server, client;
  bool client_connected = false;
};

struct World {
  World(Env& e, std::unique_ptr<Net> s, std::unique_ptr<Net> c)
      : env(e), server(std::move(s)), client(std::move(c)), group(e) {}
  Env& env;
  std::unique_ptr<Net> server, client;
  std::unique_ptr<Listener> listener;
  TaskGroup group;
  Ends ends;
};

// Reads to the end, then answers with what it heard, and says farewell.
Task<void> serve(World* w) {
  auto stream = co_await accept(*w->listener);
  std::string buffer(10'000, '\0');
  for (;;) {
    auto [ec, n] = co_await read_some(*stream, asio::buffer(buffer.data(), buffer.size()));
    w->ends.server = ec;
    if (ec) break;
    w->ends.heard.append(buffer.data(), n);
  }
  if (w->ends.server != asio::error::eof) co_return;
  w->ends.server = co_await write_all(*stream, buffers_of(w->ends.heard));
  stream->shutdown_write();
  char c = 0;
  (void)co_await read_some(*stream, asio::buffer(&c, 1));
}

Task<void> ask(World* w, std::string text, bool farewell) {
  Net& net = *w->client;
  const Endpoint at = w->listener->local();
  auto stream = co_await asio::async_initiate<const asio::use_awaitable_t<>&,
                                              void(error_code, std::unique_ptr<Stream>)>(
      [&net, at](auto handler) { net.connect(at, StreamHandler(std::move(handler))); },
      asio::use_awaitable);
  w->ends.client_connected = true;
  const std::string_view all = text;
  w->ends.client = co_await write_all(*stream, buffers_of(all.substr(0, 3), all.substr(3)));
  if (w->ends.client) co_return;
  if (!farewell) {
    stream->close();
    co_return;
  }
  stream->shutdown_write();
  std::string buffer(7'000, '\0');
  for (;;) {
    auto [ec, n] = co_await read_some(*stream, asio::buffer(buffer.data(), buffer.size()));
    w->ends.client = ec;
    if (ec) co_return;
    w->ends.answered.append(buffer.data(), n);
  }
}

Task<int> run(Env& env, std::shared_ptr<World> w, std::string text, bool farewell) {
  auto listener = w->server->listen(Endpoint{"127.0.0.1", 0});
  EXPECT_TRUE(listener);
  w->listener = std::move(listener.value());
  w->group.spawn("serve", serve(w.get()));
  w->group.spawn("ask", ask(w.get(), std::move(text), farewell));
  for (int i = 0; i < 5'000 && w->group.size() > 0; ++i)
    co_await sleep_for(env, std::chrono::milliseconds(2));
  EXPECT_EQ(w->group.size(), 0u) << "a side does not end";
  co_await w->group.stop();
  co_return 0;
}

Ends exchange(std::shared_ptr<const TlsContext> server, std::shared_ptr<const TlsContext> client,
              std::string text, bool farewell = true) {
  Runtime runtime;
  Env& env = runtime.env();
  const auto net = [&](std::shared_ptr<const TlsContext> context) -> std::unique_ptr<Net> {
    struct Plain final : Net {
      explicit Plain(Net& u) : under(u) {}
      Result<std::unique_ptr<Listener>> listen(const Endpoint& at) override {
        return under.listen(at);
      }
      void connect(const Endpoint& to, StreamHandler h) override {
        under.connect(to, std::move(h));
      }
      Net& under;
    };
    if (!context) return std::make_unique<Plain>(env.net);
    return std::make_unique<TlsNet>(env.net, env.executor, std::move(context));
  };
  auto w = std::make_shared<World>(env, net(std::move(server)), net(std::move(client)));
  EXPECT_EQ(runtime.run(run(env, w, std::move(text), farewell)), 0);
  Ends ends = w->ends;
  runtime.shutdown();
  return ends;
}

std::string long_text(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>('a' + i % 23 + i / 5'000 % 3);
  return text;
}

TEST(Tls, MutualProof_CarriesBytesBothWaysAndTheFarewell) {
  CertificateAuthority ca("one");
  auto n1 = load(ca.issue("n1")), n2 = load(ca.issue("n2"));
  for (std::size_t bytes : {std::size_t{5}, std::size_t{16'384}, std::size_t{3'000'000}}) {
    const std::string text = long_text(bytes);
    const Ends ends = exchange(n1, n2, text);
    EXPECT_TRUE(ends.heard == text) << ends.heard.size();
    EXPECT_TRUE(ends.answered == text) << ends.answered.size();
    EXPECT_EQ(ends.server, error_code());
    EXPECT_EQ(ends.client, asio::error::eof);
  }
}

TEST(Tls, ClosedWithoutHalfClose_SaysFarewellToo) {
  CertificateAuthority ca("one");
  const Ends ends = exchange(load(ca.issue("n1")), load(ca.issue("n2")), "hello", false);
  EXPECT_EQ(ends.heard, "hello");
}

TEST(Tls, CertificateOfAnotherAuthority_IsRefusedBothWays) {
  CertificateAuthority ca("one"), other("other");
  const Ends ends = exchange(load(ca.issue("n1")), load(other.issue("n2")), "hello");
  EXPECT_EQ(ends.heard, "");
  EXPECT_EQ(ends.answered, "");
  EXPECT_TRUE(ends.client);
  EXPECT_TRUE(ends.server);
  EXPECT_NE(ends.client.message().find("certificate verify failed"), std::string::npos)
      << ends.client.message();
}

TEST(Tls, ClientThatOnlyBelieves_IsRefused) {
  CertificateAuthority ca("one");
  CertificateAuthority other("other");
  TlsFiles strange = other.issue("n3");
  strange.ca_file = ca.ca_file();  // believes the server, but is not believed
  const Ends ends = exchange(load(ca.issue("n1")), load(strange), "hello");
  EXPECT_EQ(ends.heard, "");
  EXPECT_TRUE(ends.server);
  EXPECT_TRUE(ends.client);
}

TEST(Tls, ExpiredCertificate_IsRefused) {
  CertificateAuthority ca("one");
  const Ends ends = exchange(load(ca.issue("n1")), load(ca.issue("n2", -60)), "hello");
  EXPECT_EQ(ends.heard, "");
  EXPECT_TRUE(ends.server);
}

TEST(Tls, PlainClient_IsCutOffByAListenerWithTls) {
  CertificateAuthority ca("one");
  const Ends to_tls = exchange(load(ca.issue("n1")), nullptr, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(to_tls.heard, "");
  EXPECT_TRUE(to_tls.server);
}

TEST(Tls, WithoutACa_OnlyTheListenerProvesItself) {
  CertificateAuthority ca("one");
  TlsFiles server = ca.issue("n1"), client = ca.issue("n2");
  server.ca_file.clear();
  client.ca_file.clear();
  EXPECT_EQ(exchange(load(server), load(client), "hello").answered, "hello");
}

TEST(Tls, Load_OfMissingOrWrongFiles_NamesTheFile) {
  CertificateAuthority ca("one");
  const TlsFiles good = ca.issue("n1");
  const TlsFiles other = ca.issue("n2");
  const auto text_of = [](const TlsFiles& files) {
    auto r = TlsContext::load(files);
    EXPECT_FALSE(r);
    if (r) return std::string();
    EXPECT_EQ(r.error().code(), Errc::invalid_argument);
    return r.error().text();
  };
  EXPECT_NE(text_of({"/none.pem", good.key_file, good.ca_file}).find("the certificate /none.pem"),
            std::string::npos);
  EXPECT_NE(text_of({good.cert_file, "/none.key", good.ca_file}).find("the key /none.key"),
            std::string::npos);
  EXPECT_NE(text_of({good.cert_file, other.key_file, good.ca_file}).find("key values mismatch"),
            std::string::npos);
  EXPECT_NE(text_of({good.cert_file, good.key_file, "/none.ca"}).find("the CA /none.ca"),
            std::string::npos);
  std::ofstream(good.cert_file) << "no certificate";
  EXPECT_NE(text_of(good).find(good.cert_file), std::string::npos);
}

}  // namespace
}  // namespace narad

// TLS of the built binary: for clients, with certificates renewed on SIGHUP, and between nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <optional>

#include "cmd/narad/e2e/cluster.h"
#include "pkg/base/text.h"
#include "pkg/env/real/runtime.h"
#include "pkg/env/real/test_certificates.h"
#include "pkg/env/real/tls.h"
#include "pkg/http/client.h"

namespace narad::e2e {
namespace {

using narad::testing::CertificateAuthority;
using ::testing::HasSubstr;

Task<int> ask(Env& env, std::uint16_t port, std::shared_ptr<std::string> out) {
  http::Client client(env);
  http::ClientRequest request(http::Method::get, "/healthz");
  auto r = co_await client.request(Endpoint{"127.0.0.1", port}, std::move(request),
                                   Deadline::after(env, std::chrono::seconds(10)));
  *out = r ? cat("status ", r.value().status) : r.error().text();
  client.close_idle();
  co_return 0;
}

// GET /healthz by TLS, believing the authority named in `files`.
std::string healthz(std::uint16_t port, const TlsFiles& files) {
  auto context = TlsContext::load(files);
  EXPECT_TRUE(context) << context.error().text();
  RuntimeOptions options;
  options.log.level = LogLevel::error;
  Runtime runtime(options);
  TlsNet net(runtime.env().net, runtime.env().executor, context.value());
  Env env = with_net(runtime.env(), net);
  auto answer = std::make_shared<std::string>();
  EXPECT_EQ(runtime.run(ask(env, port, answer)), 0);
  runtime.shutdown();
  return *answer;
}

void replace(const std::string& from, const std::string& to) {
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
}

TEST(TlsOfClients, CertificateRenewedOnSighup_IsShownToThoseWhoComeThen) {
  CertificateAuthority first("first"), second("second");
  const TlsFiles one = first.issue("server"), two = second.issue("server");
  const TlsFiles believes_first = first.issue("client"), believes_second = second.issue("client");
  TempDir directory;
  const std::string cert = directory / "cert.pem", key = directory / "key.pem";
  replace(one.cert_file, cert);
  replace(one.key_file, key);
  BrokerOptions options;
  options.env["NARAD_HTTP_TLS_CERT_FILE"] = cert;
  options.env["NARAD_HTTP_TLS_KEY_FILE"] = key;
  Broker broker(directory / "data", options);
  ASSERT_TRUE(broker.start()) << broker.why();
  EXPECT_EQ(healthz(broker.port(), believes_first), "status 200");
  EXPECT_NE(healthz(broker.port(), believes_second), "status 200");
  EXPECT_FALSE(Http(broker.port()).get("/healthz"));  // without TLS

  replace(two.cert_file, cert);
  replace(two.key_file, key);
  broker.child().signal(SIGHUP);
  ASSERT_TRUE(broker.child().line_with("settings reloaded", std::chrono::seconds(10)));
  EXPECT_EQ(healthz(broker.port(), believes_second), "status 200");
  EXPECT_NE(healthz(broker.port(), believes_first), "status 200");

  // One that cannot be used changes nothing.
  write_text(cert, "no certificate");
  broker.child().signal(SIGHUP);
  auto line = broker.child().line_with("the certificates in force stay", std::chrono::seconds(10));
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, HasSubstr(cert));
  EXPECT_EQ(healthz(broker.port(), believes_second), "status 200");
  EXPECT_EQ(broker.terminate()->code, 0);
}

TEST(TlsOfClients, CertificateThatCannotBeRead_RefusesTheStart) {
  TempDir directory;
  BrokerOptions options;
  options.env["NARAD_HTTP_TLS_CERT_FILE"] = directory / "none.pem";
  options.env["NARAD_HTTP_TLS_KEY_FILE"] = directory / "none.key";
  Broker broker(directory / "data", options);
  EXPECT_FALSE(broker.start());
  EXPECT_THAT(broker.why(), HasSubstr(cat("cannot use the certificate ", directory / "none.pem")));
}

TEST(TlsOfNodes, ThreeNodesWithCertificates_FormAClusterAndHandOver) {
  CertificateAuthority ca("cluster");
  const TlsFiles files = ca.issue("node");
  ClusterOptions options;
  options.env["NARAD_CLUSTER_TLS_CERT_FILE"] = files.cert_file;
  options.env["NARAD_CLUSTER_TLS_KEY_FILE"] = files.key_file;
  options.env["NARAD_CLUSTER_TLS_CA_FILE"] = files.ca_file;
  Cluster cluster(options);
  ASSERT_TRUE(cluster.start()) << cluster.why();
  cluster.create_topic("orders", 3);
  std::set<std::string> payloads;
  for (int i = 0; i < 30; ++i) {
    const std::string payload = cat("p", i);
    auto answer = Http(cluster.node(static_cast<std::size_t>(i % 3)).port())
                      .post("/v1/topics/orders/produce", payload);
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->status, 202);
    payloads.insert(payload);
  }
  EXPECT_EQ(consume_all(cluster, "orders", payloads, std::chrono::seconds(30)),
            std::set<std::string>());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cluster.node(i).child().out().find("without TLS"), std::string::npos);
  }
}

}  // namespace
}  // namespace narad::e2e

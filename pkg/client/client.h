#pragma once
// narad::Client: the HTTP API of a broker as typed calls. The command line is built on it.
//
//   Client client(env, {.server = url, .user = "svc", .password = "..."});
//   NARAD_CO_TRY(co_await client.produce("orders", payload));
//   NARAD_CO_TRY(auto messages, co_await client.consume("orders", {.max = 100, .wait = 10s}));
//   for (auto& m : messages) { work(m); co_await client.ack("orders", m.receipt_handle); }
//
// One object per loop; calls may run concurrently, each on a connection of its own out of a pool.
// Payloads are read as base64, so they are byte for byte what was produced.
//
// Errors: an answer of 400 or above has the text "http CODE: what the server said" and the Errc
// that fits the status (a call that the server knows nothing of is named: "... this server does not
// offer POST /v1/..."); no answer has the text "transport: ...", and Errc::unavailable (nothing was
// sent: safe to repeat) or Errc::unknown_outcome (it may have happened). No call retries by itself,
// but for reads on a kept-alive connection that turned out to be dead.
#include <chrono>
#include <memory>
#include <string>

#include "pkg/async/task.h"
#include "pkg/client/types.h"
#include "pkg/http/client.h"

namespace narad {

namespace client {

struct ClientOptions {
  http::ClientOptions pool;
  Nanos timeout = std::chrono::seconds(60);  // per call; a long poll's wait comes on top
};

struct ProduceOptions {
  std::string key{};                       // empty: the server makes one
  std::optional<PartitionId> partition{};  // overrides the key
};

struct ConsumeOptions {
  std::uint32_t max = 1;  // up to kConsumeMax; above 1 the answer is a batch
  Nanos wait{0};          // long-poll time; the server clamps it (10 s by default)
  std::optional<PartitionId> partition{};
};

struct Answer {
  int status = 0;  // below 400
  std::string body;
};

}  // namespace client

class Client {
 public:
  // `server`: see client::parse_server_url; a malformed one is what every call then answers. No
  // credentials are sent while `user` is empty.
  Client(Env& env, std::string server, std::string user, std::string password,
         client::ClientOptions options = {});

  Task<Result<client::TopicInfo>> create_topic(client::NewTopic topic);
  Task<Result<client::TopicPage>> list_topics(std::uint32_t limit, std::string page_token);
  // Every page of it.
  Task<Result<std::vector<client::TopicInfo>>> all_topics();
  Task<Result<client::TopicInfo>> topic(std::string name);
  Task<Result<client::TopicInfo>> change_topic(std::string name, client::TopicChange change);
  Task<Result<void>> delete_topic(std::string name);

  Task<Result<void>> produce(std::string topic, std::string payload,
                             client::ProduceOptions options = {});
  // All or nothing. The number accepted. invalid_argument above kBatchRecordsMax.
  Task<Result<std::uint64_t>> produce_batch(std::string topic,
                                            std::vector<client::BatchRecord> records,
                                            std::optional<PartitionId> partition = {});
  // Leases up to `max` messages; none if nothing came within `wait`.
  Task<Result<std::vector<client::Received>>> consume(std::string topic,
                                                      client::ConsumeOptions options = {});
  // One record as it is, without a lease; nothing at or past the high watermark; Errc::gone below
  // the oldest one or where it cannot be read.
  Task<Result<std::optional<client::Received>>> replay(std::string topic, PartitionId partition,
                                                       Offset offset);

  Task<Result<void>> ack(std::string topic, std::string handle);
  // Restarts the lease's time; the handle stays valid.
  Task<Result<void>> extend(std::string topic, std::string handle);
  // Gives the message back at once.
  Task<Result<void>> nack(std::string topic, std::string handle);
  // One result per handle, in order. invalid_argument above kAckHandlesMax.
  Task<Result<std::vector<client::AckResult>>> settle(std::string topic, client::AckMode mode,
                                                      std::vector<std::string> handles);

  Task<Result<std::vector<client::MemberInfo>>> members();

  // Any call: `target` begins with "/v1/". An empty `content_type` sends none.
  Task<Result<client::Answer>> call(http::Method method, std::string target, std::string body = {},
                                    std::string content_type = {});

 private:
  Task<Result<client::Answer>> exchange(http::ClientRequest request, Nanos timeout);
  Task<Result<void>> settle_one(std::string topic, std::string handle, std::string_view extend);

  Env& env_;
  client::ClientOptions options_;
  std::string authorization_;  // empty: none
  Endpoint endpoint_;
  std::string base_;
  std::optional<Error> bad_server_;
  http::Client http_;
};

}  // namespace narad

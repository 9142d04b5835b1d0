#include "pkg/client/client.h"

#include <chrono>

#include "pkg/base/text.h"
#include "pkg/client/server_url.h"
#include "pkg/http/query.h"
#include "pkg/json/document.h"
#include "pkg/json/text.h"
#include "pkg/json/writer.h"

namespace narad {

using client::Answer;
using http::encode_component;
using http::Method;

namespace {

constexpr std::uint32_t kPageMax = 1000;

Errc code_of(int status) {
  switch (status) {
    case 401:
      return Errc::unauthenticated;
    case 403:
      return Errc::forbidden;
    case 404:
      return Errc::not_found;
    case 409:
      return Errc::conflict;
    case 410:
      return Errc::gone;
    case 413:
      return Errc::too_large;
    case 421:
      return Errc::not_owner;
    case 429:
      return Errc::busy;
    case 502:
      return Errc::unknown_outcome;
    case 503:
      return Errc::unavailable;
    default:
      return status < 500 ? Errc::invalid_argument : Errc::internal;
  }
}

// The answer of a router that knows no such path or method, not of a handler: an older broker, or
// something else altogether.
bool is_unrouted(int status, std::string_view body) {
  if (status != 404 && status != 405) return false;
  std::string text = client::error_text(body);
  return text == "404 page not found" || text == "Method Not Allowed";
}

std::string topic_target(std::string_view topic, std::string_view rest = {}) {
  return cat("/v1/topics/", encode_component(topic), rest);
}

}  // namespace

Client::Client(Env& env, std::string server, std::string user, std::string password,
               client::ClientOptions options)
    : env_(env), options_(options), http_(env, options.pool) {
  if (!user.empty()) authorization_ = http::basic_authorization(user, password);
  auto url = client::parse_server_url(server);
  if (!url) {
    bad_server_ = url.error();
    return;
  }
  endpoint_ = url.value().endpoint;
  base_ = url.value().base;
}

Task<Result<Answer>> Client::exchange(http::ClientRequest request, Nanos timeout) {
  if (bad_server_) co_return *bad_server_;
  std::string what =
      cat(http::to_string(request.method), ' ', request.target.substr(0, request.target.find('?')));
  request.target = base_ + request.target;
  if (!authorization_.empty()) request.headers.add("Authorization", authorization_);
  Deadline deadline = Deadline::after(env_, timeout);
  auto response = co_await http_.request(endpoint_, std::move(request), deadline);
  if (!response) co_return response.error().with_context("transport");
  http::ClientResponse& r = response.value();
  if (r.status >= 400) {
    std::string text = cat("http ", r.status, ": ", client::error_text(r.body));
    if (is_unrouted(r.status, r.body)) text += cat("; this server does not offer ", what);
    co_return Error(code_of(r.status), std::move(text));
  }
  co_return Answer{r.status, std::move(r.body)};
}

Task<Result<Answer>> Client::call(Method method, std::string target, std::string body,
                                  std::string content_type) {
  http::ClientRequest request(method, std::move(target));
  if (!content_type.empty()) request.headers.add("Content-Type", content_type);
  request.repeatable = method == Method::get && body.empty();
  request.body = std::move(body);
  co_return co_await exchange(std::move(request), options_.timeout);
}

Task<Result<client::TopicInfo>> Client::create_topic(client::NewTopic topic) {
  std::string body = client::encode_new_topic(topic);
  NARAD_CO_TRY(auto answer,
               co_await call(Method::post, "/v1/topics", std::move(body), "application/json"));
  co_return client::decode_topic(std::move(answer.body));
}

Task<Result<client::TopicPage>> Client::list_topics(std::uint32_t limit, std::string page_token) {
  std::string target = cat("/v1/topics?limit=", limit);
  if (!page_token.empty()) target += cat("&page_token=", encode_component(page_token));
  NARAD_CO_TRY(auto answer, co_await call(Method::get, std::move(target)));
  co_return client::decode_topic_page(std::move(answer.body));
}

Task<Result<std::vector<client::TopicInfo>>> Client::all_topics() {
  std::vector<client::TopicInfo> all;
  std::string token;
  do {
    NARAD_CO_TRY(auto page, co_await list_topics(kPageMax, token));
    for (client::TopicInfo& t : page.topics) all.push_back(std::move(t));
    if (!page.next_page_token.empty() && page.next_page_token <= token) {
      co_return Error(Errc::data_loss, "the server's pages of topics do not advance");
    }
    token = std::move(page.next_page_token);
  } while (!token.empty());
  co_return all;
}

Task<Result<client::TopicInfo>> Client::topic(std::string name) {
  NARAD_CO_TRY(auto answer, co_await call(Method::get, topic_target(name)));
  co_return client::decode_topic(std::move(answer.body));
}

Task<Result<client::TopicInfo>> Client::change_topic(std::string name, client::TopicChange change) {
  std::string body = client::encode_topic_change(change);
  NARAD_CO_TRY(auto answer, co_await call(Method::patch, topic_target(name), std::move(body),
                                          "application/json"));
  co_return client::decode_topic(std::move(answer.body));
}

Task<Result<void>> Client::delete_topic(std::string name) {
  NARAD_CO_TRY(co_await call(Method::delete_, topic_target(name)));
  co_return ok();
}

Task<Result<void>> Client::produce(std::string topic, std::string payload,
                                   client::ProduceOptions options) {
  std::string target = topic_target(topic, "/produce");
  char separator = '?';
  if (!options.key.empty()) {
    target += cat(separator, "key=", encode_component(options.key));
    separator = '&';
  }
  if (options.partition) target += cat(separator, "partition=", *options.partition);
  NARAD_CO_TRY(co_await call(Method::post, std::move(target), std::move(payload),
                             "application/octet-stream"));
  co_return ok();
}

Task<Result<std::uint64_t>> Client::produce_batch(std::string topic,
                                                  std::vector<client::BatchRecord> records,
                                                  std::optional<PartitionId> partition) {
  if (records.empty() || records.size() > client::kBatchRecordsMax) {
    co_return Error(Errc::invalid_argument,
                    cat("a batch holds 1 to ", client::kBatchRecordsMax, " records"));
  }
  std::string target = topic_target(topic, "/produce:batch");
  if (partition) target += cat("?partition=", *partition);
  std::string body = client::encode_batch(records);
  NARAD_CO_TRY(auto answer, co_await call(Method::post, std::move(target), std::move(body),
                                          "application/vnd.narad.batch"));
  auto document = json::Document::parse(std::move(answer.body), json::kBodyDepthMax);
  if (document && document.value().root().is(json::Kind::object)) {
    auto accepted = document.value().root().find("accepted");
    if (accepted && accepted->is(json::Kind::number)) {
      if (auto n = accepted->as_uint64()) co_return *n;
    }
  }
  co_return Error(Errc::data_loss, "the server's answer to a batch has no count");
}

Task<Result<std::vector<client::Received>>> Client::consume(std::string topic,
                                                            client::ConsumeOptions options) {
  std::string target = topic_target(topic, "/consume?encoding=base64");
  if (options.max > 1) target += cat("&max=", options.max);
  if (options.wait > Nanos(0)) target += cat("&wait=", options.wait.count(), "ns");
  if (options.partition) target += cat("&partition=", *options.partition);
  http::ClientRequest request(Method::get, std::move(target));
  Nanos timeout = options_.timeout + options.wait;
  NARAD_CO_TRY(auto answer, co_await exchange(std::move(request), timeout));
  std::vector<client::Received> messages;
  if (answer.status == 204) co_return messages;
  if (options.max > 1) co_return client::decode_received_list(std::move(answer.body));
  NARAD_CO_TRY(auto message, client::decode_received(std::move(answer.body)));
  messages.push_back(std::move(message));
  co_return messages;
}

Task<Result<std::optional<client::Received>>> Client::replay(std::string topic,
                                                             PartitionId partition, Offset offset) {
  std::string target = topic_target(
      topic, cat("/consume?encoding=base64&partition=", partition, "&offset=", offset));
  NARAD_CO_TRY(auto answer, co_await call(Method::get, std::move(target)));
  if (answer.status == 204) co_return std::optional<client::Received>();
  NARAD_CO_TRY(auto message, client::decode_received(std::move(answer.body)));
  co_return std::optional<client::Received>(std::move(message));
}

Task<Result<void>> Client::settle_one(std::string topic, std::string handle,
                                      std::string_view extend) {
  std::string target =
      topic_target(topic, cat("/ack?receipt_handle=", encode_component(handle), extend));
  NARAD_CO_TRY(co_await call(Method::post, std::move(target)));
  co_return ok();
}

Task<Result<void>> Client::ack(std::string topic, std::string handle) {
  return settle_one(std::move(topic), std::move(handle), "");
}
Task<Result<void>> Client::extend(std::string topic, std::string handle) {
  return settle_one(std::move(topic), std::move(handle), "&extend=true");
}
Task<Result<void>> Client::nack(std::string topic, std::string handle) {
  return settle_one(std::move(topic), std::move(handle), "&extend=0");
}

Task<Result<std::vector<client::AckResult>>> Client::settle(std::string topic, client::AckMode mode,
                                                            std::vector<std::string> handles) {
  if (handles.size() > client::kAckHandlesMax) {
    co_return Error(Errc::invalid_argument,
                    cat("at most ", client::kAckHandlesMax, " handles a call"));
  }
  json::Writer w;
  w.begin_object().member("mode", client::to_string(mode)).key("handles").begin_array();
  for (const std::string& handle : handles) w.value(handle);
  w.end_array().end_object();
  std::string target = topic_target(topic, "/ack:batch");
  NARAD_CO_TRY(auto answer,
               co_await call(Method::post, std::move(target), w.take(), "application/json"));
  co_return client::decode_ack_results(std::move(answer.body));
}

Task<Result<std::vector<client::MemberInfo>>> Client::members() {
  NARAD_CO_TRY(auto answer, co_await call(Method::get, "/v1/cluster/members"));
  co_return client::decode_members(std::move(answer.body));
}

}  // namespace narad

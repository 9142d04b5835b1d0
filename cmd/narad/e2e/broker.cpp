#include "cmd/narad/e2e/broker.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <thread>

#include "pkg/base/text.h"

namespace narad::e2e {
namespace json = boost::json;

Broker::Broker(std::string data_dir, BrokerOptions options)
    : data_dir_(std::move(data_dir)), options_(std::move(options)) {}

bool Broker::start() {
  launch();
  return await_ready();
}

void Broker::launch() {
  std::vector<std::string> argv = options_.wrapper;
  argv.insert(argv.end(), {options_.binary.empty() ? narad_binary() : options_.binary, "serve",
                           "--addr", options_.addr, "--data-dir", data_dir_});
  argv.insert(argv.end(), options_.args.begin(), options_.args.end());
  ChildOptions child;
  child.env = options_.env;
  if (options_.testing) child.env["NARAD_TESTING"] = "1";
  // Tests of security say so; all others need no users.
  child.env.try_emplace("NARAD_SECURITY_ENABLED", "false");
  earlier_ = log();
  child_.reset();  // an earlier one frees what the next one takes
  child_ = std::make_unique<Child>(std::move(argv), std::move(child));
  // Known before it is ready, unless the system chooses it.
  port_ = static_cast<std::uint16_t>(std::stoi(options_.addr.substr(options_.addr.rfind(':') + 1)));
}

bool Broker::await_ready(Duration limit) {
  auto line = child_->line_with("\"node ready\"", limit);
  if (!line) {
    if (!child_->running()) child_->wait(std::chrono::seconds(5));
    why_ = child_->err() + child_->out();
    return false;
  }
  const auto event = json::parse(*line).as_object();
  const std::string listen(event.at("listen").as_string());
  port_ = static_cast<std::uint16_t>(std::stoi(listen.substr(listen.rfind(':') + 1)));
  return true;
}

std::string Broker::log() { return child_ ? earlier_ + child_->out() + child_->err() : earlier_; }

std::optional<Exit> Broker::terminate(Duration limit) {
  child_->signal(SIGTERM);
  return child_->wait(limit);
}

void Broker::create_topic(const std::string& name, int partitions) {
  auto answer =
      client().post("/v1/topics", cat("{\"name\":\"", name, "\",\"partitions\":", partitions, "}"));
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->status, 201) << answer->body;
}

std::vector<Record> read_all(std::uint16_t port, const std::string& topic) {
  std::vector<Record> records;
  Http http(port);
  auto info = http.get("/v1/topics/" + topic);
  EXPECT_TRUE(info && info->status == 200);
  if (!info || info->status != 200) return records;
  const json::value described = json::parse(info->body);
  for (const auto& stat : described.as_object().at("partition_stats").as_array()) {
    const auto& s = stat.as_object();
    const std::int64_t partition = s.at("index").to_number<std::int64_t>();
    const std::int64_t hwm = s.at("high_watermark").to_number<std::int64_t>();
    for (std::int64_t offset = s.at("oldest_offset").to_number<std::int64_t>(); offset < hwm;
         ++offset) {
      auto answer =
          http.get(cat("/v1/topics/", topic, "/consume?encoding=base64&partition=", partition,
                       "&offset=", offset));
      EXPECT_TRUE(answer && answer->status == 200)
          << "partition " << partition << " offset " << offset << ": "
          << (answer ? cat(answer->status, " ", answer->body) : "no answer");
      if (!answer || answer->status != 200) return records;
      const json::value body = json::parse(answer->body);
      const auto& m = body.as_object();
      Record record;
      record.partition = static_cast<int>(partition);
      record.offset = m.at("offset").to_number<std::int64_t>();
      record.key = std::string(m.at("key").as_string());
      auto payload = parse_base64(std::string_view(m.at("payload").as_string()));
      EXPECT_TRUE(payload);
      if (payload) record.payload = to_text(*payload);
      EXPECT_EQ(record.offset, offset);
      records.push_back(std::move(record));
    }
  }
  return records;
}

std::map<int, std::int64_t> high_watermarks(std::uint16_t port, const std::string& topic) {
  std::map<int, std::int64_t> watermarks;
  Http http(port);
  auto info = http.get("/v1/topics/" + topic);
  if (!info || info->status != 200) return watermarks;
  const json::value described = json::parse(info->body);
  for (const auto& stat : described.as_object().at("partition_stats").as_array()) {
    const auto& s = stat.as_object();
    watermarks[s.at("index").to_number<int>()] = s.at("high_watermark").to_number<std::int64_t>();
  }
  return watermarks;
}

bool await_records(std::uint16_t port, const std::string& topic, std::int64_t records,
                   Duration limit) {
  const auto until = Clock::now() + limit;
  while (Clock::now() < until) {
    std::int64_t sum = 0;
    for (const auto& [partition, hwm] : high_watermarks(port, topic)) sum += hwm;
    if (sum >= records) return true;
    // The broker has no call that waits for a hand-over: look again.
    std::this_thread::yield();
  }
  return false;
}

}  // namespace narad::e2e

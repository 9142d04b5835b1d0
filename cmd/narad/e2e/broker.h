#pragma once
// One `narad serve` of a test, on a port of its own, and the few calls that tests make of it.
#include <memory>
#include <string>
#include <vector>

#include "cmd/narad/e2e/child.h"
#include "cmd/narad/e2e/http.h"

namespace narad::e2e {

struct BrokerOptions {
  std::vector<std::string> args;           // further flags of serve
  std::map<std::string, std::string> env;  // further environment; security is off unless it is here
  std::vector<std::string> wrapper;        // for example strace …, in front of the command
  std::string addr = "127.0.0.1:0";        // of HTTP; a port of 0: any, another at each start
  bool testing = true;                     // NARAD_TESTING=1: timing.* may be set
  std::string binary{};                    // empty: that of this build
  std::string host = "127.0.0.1";          // where clients reach it
};

class Broker {
 public:
  explicit Broker(std::string data_dir, BrokerOptions options = {});

  // Starts the process and waits until it says that it is ready; false (see err()) if it ended
  // first.
  bool start();
  // The same in two steps, for brokers that become ready together.
  void launch();
  bool await_ready(Duration limit = std::chrono::seconds(60));
  void kill9() { child_->kill9(); }
  // SIGTERM, and the exit within `limit`.
  std::optional<Exit> terminate(Duration limit = std::chrono::seconds(10));
  Child& child() { return *child_; }
  std::uint16_t port() const { return port_; }
  const std::string& host() const { return options_.host; }
  Http client() const { return Http(port_, options_.host); }
  // Of the next start.
  std::map<std::string, std::string>& env() { return options_.env; }
  // All that it has printed so far, in all its lives.
  std::string log();
  std::string why() const { return why_; }  // what it printed instead of becoming ready

  // Creates a topic; fails the test if it is not created.
  void create_topic(const std::string& name, int partitions);

 private:
  std::string data_dir_;
  BrokerOptions options_;
  std::unique_ptr<Child> child_;
  std::uint16_t port_ = 0;
  std::string why_;
  std::string earlier_;  // printed by those before child_
};

// One record as a replay read shows it.
struct Record {
  int partition = 0;
  std::int64_t offset = 0;
  std::string key;
  std::string payload;
};
// Every record of every partition of a topic, read by replay; offsets are checked to be dense.
std::vector<Record> read_all(std::uint16_t port, const std::string& topic);

// Partition -> high watermark, as the statistics say now.
std::map<int, std::int64_t> high_watermarks(std::uint16_t port, const std::string& topic);

// Waits until the topic's partitions hold `records` records together (the hand-over is done), by
// asking for the statistics; false after `limit`.
bool await_records(std::uint16_t port, const std::string& topic, std::int64_t records,
                   Duration limit);

}  // namespace narad::e2e

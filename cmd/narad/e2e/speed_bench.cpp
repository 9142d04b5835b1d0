// How fast the whole broker is, beside its load generator, as ratios to baselines measured in the
// same run: raw fdatasync, and a bare HTTP server under the same client. Verifies its own premises
// (every message that was answered 202 is stored at the end). With --check, exits 1 below a
// threshold.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cmd/narad/e2e/broker.h"
#include "cmd/narad/e2e/figures.h"
#include "pkg/base/bytes.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

using std::chrono::seconds;

struct Wrk {
  double per_second = 0;
  bool clean = false;  // no socket errors, no answer but 2xx
};
Wrk wrk(const std::string& url, const std::string& script, int connections, int time) {
  Ran ran = run({"wrk", "-t1", cat("-c", connections), cat("-d", time), "-s", script, url}, {},
                seconds(60));
  Wrk result;
  const std::size_t at = ran.out.find("Requests/sec:");
  if (at != std::string::npos) result.per_second = std::atof(ran.out.c_str() + at + 13);
  result.clean = ran.exit.code == 0 && ran.out.find("Non-2xx") == std::string::npos &&
                 ran.out.find("Socket errors") == std::string::npos;
  return result;
}

std::int64_t stored(std::uint16_t port, const std::string& topic) {
  Http http(port);
  auto info = http.get("/v1/topics/" + topic);
  std::int64_t sum = 0;
  for (std::size_t at = 0;
       info && (at = info->body.find("\"high_watermark\":", at)) != std::string::npos; ++at) {
    sum += std::atoll(info->body.c_str() + at + 17);
  }
  return sum;
}

std::string binary_batch(int records, std::size_t bytes) {
  Bytes out;
  ByteWriter w(out);
  w.bytes(as_bytes("NRB1"));
  w.u32(static_cast<std::uint32_t>(records));
  const std::string value(bytes, 'v');
  for (int i = 0; i < records; ++i) {
    const std::string key = cat("k", i);
    w.u32(static_cast<std::uint32_t>(key.size()));
    w.u32(static_cast<std::uint32_t>(value.size()));
    w.bytes(as_bytes(key));
    w.bytes(as_bytes(value));
  }
  return to_text(out);
}

std::string ndjson_batch(int records, std::size_t bytes) {
  std::string out;
  const std::string value(bytes, 'v');
  for (int i = 0; i < records; ++i)
    out += cat("{\"key\":\"k", i, "\",\"value\":\"", value, "\"}\n");
  return out;
}

// Messages a second that `work(http)` moves on `threads` connections for `time`; `work` answers how
// many.
template <class F>
double rate(std::uint16_t port, int threads, seconds time, F work) {
  std::atomic<std::int64_t> moved{0};
  std::vector<std::thread> workers;
  const auto start = Clock::now();
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      Http http(port);
      while (Clock::now() - start < time) moved += work(http);
    });
  }
  for (auto& w : workers) w.join();
  return static_cast<double>(moved) / seconds_since(start);
}

std::vector<std::string> handles_in(const std::string& body) {
  std::vector<std::string> handles;
  for (std::size_t at = 0; (at = body.find("\"receipt_handle\":\"", at)) != std::string::npos;) {
    at += 18;
    handles.push_back(body.substr(at, body.find('"', at) - at));
  }
  return handles;
}

int bench(bool check) {
  TempDir dir;
  const std::string script = dir / "post.lua";
  write_text(script, "wrk.method = \"POST\"\nwrk.body = string.rep(\"x\", 256)\n");
  const double sync_us = sync_baseline(dir.path());
  std::printf("baseline: fdatasync after a 400-byte append, p50 %.0f us\n", sync_us);

  Child echo({build_directory() + "/pkg/http/pkg_http_server_bench", "--listen", "0"});
  auto listening = echo.line_with("listening on ", seconds(10));
  if (!listening) return 2;
  const double bare =
      wrk("http://" + listening->substr(listening->find("127.0.0.1")) + "/accept", script, 64, 5)
          .per_second;
  echo.kill9();
  std::printf("baseline: bare server answering 202 to wrk with 64 connections, %.0f req/s\n", bare);

  Broker broker(dir / "data");
  if (!broker.start()) {
    std::printf("the broker does not start: %s\n", broker.why().c_str());
    return 2;
  }
  for (const char* topic : {"single", "latency", "binary", "lines"}) broker.create_topic(topic, 3);
  const auto base = cat("http://127.0.0.1:", broker.port(), "/v1/topics/");

  const Wrk single = wrk(base + "single/produce?key=a", script, 64, 6);
  report("produce, single, 64 connections", single.per_second, "req/s", 40'000);
  report("  of the bare server", single.per_second / bare, "x", 0.3);
  report("  answered 202 without exception", single.clean ? 1 : 0, "", 1);
  const auto waited = Clock::now();
  std::int64_t before = -1, now = 0;
  while ((now = stored(broker.port(), "single")) != before) before = now;
  report("  backlog at the end", seconds_since(waited), "s", 1.0, true);

  {
    Http http(broker.port());
    std::vector<double> took;
    const std::string body(256, 'x');
    for (int i = 0; i < 3000; ++i) {
      const auto start = Clock::now();
      auto answer = http.post("/v1/topics/latency/produce?key=a", body);
      if (!answer || answer->status != 202) return 2;
      took.push_back(seconds_since(start) * 1e6);
    }
    report("produce, 1 connection, p50 / fdatasync p50", percentile(took, 0.5) / sync_us, "x", 2.2,
           true);
    report("produce, 1 connection, p99 / fdatasync p50", percentile(took, 0.99) / sync_us, "x", 4,
           true);
  }

  const auto produce = [](const char* topic, const std::string& body, const char* type,
                          int records) {
    return [=](Http& http) -> std::int64_t {
      auto answer = http.request("POST", cat("/v1/topics/", topic, "/produce:batch"), body,
                                 {{"Content-Type", type}});
      return answer && answer->status == 202 ? records : 0;
    };
  };
  report("produce, binary batches of 1,000 x 256 B",
         rate(broker.port(), 2, seconds(5),
              produce("binary", binary_batch(1000, 256), "application/vnd.narad.batch", 1000)),
         "msg/s", 400'000);
  report("produce, NDJSON batches of 1,000 x 256 B",
         rate(broker.port(), 2, seconds(4),
              produce("lines", ndjson_batch(1000, 256), "application/x-ndjson", 1000)),
         "msg/s", 100'000);

  report("consume and ack, single, 16 connections",
         rate(broker.port(), 16, seconds(5),
              [](Http& http) -> std::int64_t {
                auto got = http.get("/v1/topics/single/consume?wait=1s");
                if (!got || got->status != 200) return 0;
                const auto handles = handles_in(got->body);
                auto acked =
                    http.post("/v1/topics/single/ack?receipt_handle=" + url_encode(handles.at(0)));
                return acked && acked->status == 204 ? 1 : 0;
              }),
         "msg/s", 15'000);
  report("consume and ack, batches of 1,000",
         rate(broker.port(), 3, seconds(5),
              [](Http& http) -> std::int64_t {
                auto got = http.get("/v1/topics/binary/consume?wait=1s&max=1000");
                if (!got || got->status != 200) return 0;
                const auto handles = handles_in(got->body);
                std::string body = "{\"mode\":\"ack\",\"handles\":[";
                for (const auto& h : handles)
                  body += cat(body.back() == '[' ? "\"" : ",\"", h, "\"");
                auto acked = http.post("/v1/topics/binary/ack:batch", body + "]}");
                return acked && acked->status == 200 ? static_cast<std::int64_t>(handles.size())
                                                     : 0;
              }),
         "msg/s", 200'000);

  {
    Broker idle(dir / "idle");
    if (!idle.start()) return 2;
    for (int t = 0; t < 100; ++t) idle.create_topic(cat("t", t), 100);
    const Usage start = usage(idle.child().pid());
    idle.child().wait(seconds(10));  // it does not end: ten quiet seconds
    const Usage end = usage(idle.child().pid());
    report("10,000 idle partitions, memory", end.rss_mib, "MiB", 200, true);
    report("10,000 idle partitions, share of a core", (end.cpu_seconds - start.cpu_seconds) / 10,
           "", 0.01, true);
  }
  return check && !all_good() ? 1 : 0;
}

}  // namespace
}  // namespace narad::e2e

int main(int argc, char** argv) {
  ::setenv("NARAD_BUILD_DIR", "build/release", 0);
  return narad::e2e::bench(argc > 1 && std::string(argv[1]) == "--check");
}

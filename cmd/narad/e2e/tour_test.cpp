// The commands of README.md are run as they stand, but for the port and the directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/narad/e2e/cluster.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> tour_blocks(const std::string& text) {
  constexpr std::string_view kOpen = "```sh tour\n";
  std::vector<std::string> blocks;
  std::size_t at = 0;
  while ((at = text.find(kOpen, at)) != std::string::npos) {
    at += kOpen.size();
    std::size_t end = text.find("```", at);
    blocks.push_back(text.substr(at, end - at));
    at = end;
  }
  return blocks;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

TEST(Readme, EveryCommandOfTheTour_Works) {
  std::vector<std::string> blocks = tour_blocks(read_text("README.md"));
  ASSERT_GE(blocks.size(), 4u);
  TempDir directory;
  std::string script = "set -eum\ntrap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n";
  for (const std::string& block : blocks) script += block;
  // Each node's number is the last digit of its ports.
  script = replaced(script, "795$n", "${cluster[$n]}");
  script = replaced(script, "796$n", "${http[$n]}");
  std::vector<std::string> lists(2, "(0");
  const std::vector<std::uint16_t> ports = free_ports(7);
  const std::string port = cat(ports.back());
  for (std::size_t n = 1; n <= 3; ++n) {
    script = replaced(script, cat("795", n), cat(ports[n - 1]));
    script = replaced(script, cat("796", n), cat(ports[n + 2]));
    lists[0] += cat(" ", ports[n - 1]);
    lists[1] += cat(" ", ports[n + 2]);
  }
  script = cat("cluster=", lists[0], ") http=", lists[1], ")\n", script);
  script = replaced(script, "7942", port);
  script = replaced(script, "/tmp/narad-tour", directory / "data");
  script = replaced(script, "$PWD/build/release", build_directory());
  ChildOptions options;
  options.env["HOME"] = directory.path();
  options.env["NARAD_ADDR"] = "http://127.0.0.1:" + port;
  Ran ran = run({"/usr/bin/env", "bash", "-c", script}, options, std::chrono::seconds(120));
  EXPECT_EQ(ran.exit.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("{\"order\":1}"));
  EXPECT_THAT(ran.out, HasSubstr("key=customer-42"));
  EXPECT_THAT(ran.out, HasSubstr("{\"invoice\":1}"));
  EXPECT_THAT(ran.err, HasSubstr("verify: 20000 accepted, 20000 delivered, 0 lost"));
}

}  // namespace
}  // namespace narad::e2e

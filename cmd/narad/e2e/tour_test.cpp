// The commands of README.md are run as they stand, but for the port and the directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/narad/e2e/child.h"
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

// A port that was free a moment ago.
std::string free_port() {
  Ran ran = run({"/usr/bin/env", "bash", "-c",
                 "for p in $(shuf -i 20000-32000 -n 50); do "
                 "(exec 3<>/dev/tcp/127.0.0.1/$p) 2>/dev/null || { echo -n $p; exit; }; done"});
  return ran.out;
}

TEST(Readme, EveryCommandOfTheTour_Works) {
  std::vector<std::string> blocks = tour_blocks(read_text("README.md"));
  ASSERT_GE(blocks.size(), 4u);
  TempDir directory;
  std::string script = "set -eum\ntrap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n";
  for (const std::string& block : blocks) script += block;
  std::string port = free_port();
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
  EXPECT_THAT(ran.err, HasSubstr("verify: 20000 accepted, 20000 delivered, 0 lost"));
}

}  // namespace
}  // namespace narad::e2e

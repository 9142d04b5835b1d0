// The draft 7 files of the public test suite, as Debian's json-schema-test-suite installs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "pkg/base/text.h"
#include "pkg/jsonschema/schema.h"

namespace narad::jsonschema {
namespace {

namespace fs = std::filesystem;

constexpr char kSuite[] = "/usr/share/json-schema-test-suite/tests/draft7";

// What is left out, and why. "file: schema" or "file: schema: test"; a file alone means all of it.
const std::set<std::string> kLeftOut = {
    // Remote references: nothing is fetched, and no other document is known.
    "refRemote.json",
    "definitions.json: invalid definition",
    "definitions.json: valid definition",
    "ref.json: remote ref, containing refs itself",
};

// The other optional files test "format", "contentEncoding" and "contentMediaType", which are
// annotations here (http-api 2.6); ecmascript-regex.json is a test of the format "regex".
constexpr std::string_view kOptionalFiles[] = {"bignum.json", "zeroTerminatedFloats.json"};

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The suite's schemas do not say which draft they are written in.
std::string as_draft7(json::Value schema) {
  if (!schema.is(json::Kind::object)) return std::string(schema.raw());
  std::string text(schema.raw());
  const bool empty = schema.size() == 0;
  return cat("{\"$schema\":\"http://json-schema.org/draft-07/schema#\"", empty ? "" : ",",
             text.substr(1));
}

struct Counts {
  std::size_t schemas = 0, tests = 0, skipped = 0;
};

void run_file(const fs::path& path, const std::set<std::string>& left_out, Counts& counts) {
  const std::string file = path.filename().string();
  if (left_out.contains(file)) {
    ++counts.skipped;
    return;
  }
  auto document = json::Document::parse(slurp(path), 1000);
  ASSERT_TRUE(document) << path << ": " << document.error().text();
  const json::Value groups = document.value().root();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const json::Value group = groups.element(g);
    const std::string name = cat(file, ": ", group.find("description")->as_string());
    if (left_out.contains(name)) {
      ++counts.skipped;
      continue;
    }
    ++counts.schemas;
    auto schema = Schema::compile(as_draft7(*group.find("schema")));
    const json::Value tests = *group.find("tests");
    for (std::size_t t = 0; t < tests.size(); ++t) {
      const json::Value test = tests.element(t);
      const std::string full = cat(name, ": ", test.find("description")->as_string());
      if (left_out.contains(full)) {
        ++counts.skipped;
        continue;
      }
      ++counts.tests;
      const bool expected = test.find("valid")->as_bool();
      if (!schema) {
        ADD_FAILURE() << full << "\n  refused: " << schema.error().text();
        continue;
      }
      auto r = schema.value().validate(std::string(test.find("data")->raw()));
      EXPECT_EQ(r.has_value(), expected)
          << full << "\n  schema " << group.find("schema")->raw() << "\n  data "
          << test.find("data")->raw() << "\n  " << (r ? "accepted" : r.error().text());
    }
  }
}

TEST(JsonSchemaSuite, Draft7_PassesButForRemoteReferences) {
  ASSERT_TRUE(fs::is_directory(kSuite))
      << kSuite << " is missing: apt-get install json-schema-test-suite";
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kSuite)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Counts counts;
  for (const auto& file : files) run_file(file, kLeftOut, counts);
  std::cout << counts.tests << " tests of " << counts.schemas << " schemas, " << counts.skipped
            << " left out\n";
  EXPECT_GE(files.size(), 34u);
  EXPECT_EQ(counts.tests, 404u);
  EXPECT_EQ(counts.skipped, kLeftOut.size());
}

TEST(JsonSchemaSuite, Draft7OptionalNumbers_Pass) {
  ASSERT_TRUE(fs::is_directory(kSuite))
      << kSuite << " is missing: apt-get install json-schema-test-suite";
  Counts counts;
  for (std::string_view file : kOptionalFiles) {
    run_file(fs::path(kSuite) / "optional" / file, {}, counts);
  }
  EXPECT_EQ(counts.tests, 10u);
}

}  // namespace
}  // namespace narad::jsonschema

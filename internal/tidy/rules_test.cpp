// Each rule against a planted violation, and against the nearest thing that is allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "internal/tidy/tidy.h"

namespace narad::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::size_t> lines(const Findings& findings) {
  std::vector<std::size_t> out;
  for (const Finding& f : findings) out.push_back(f.line);
  return out;
}
Findings doors(std::string path, std::string text) {
  return check_doors({{std::move(path), std::move(text)}});
}

TEST(CodeText, CommentsAndLiterals_AreBlankedButLinesStay) {
  EXPECT_EQ(code_only("a; // b\n\"c\" /* d\n */ e 'f' 1'000"),
            "a;     \n\" \"     \n    e ' ' 1'000");
  EXPECT_EQ(code_only("R\"x(getenv \")\" )x\" y").find("getenv"), std::string::npos);
  EXPECT_THAT(code_only("\"\\\"\" z"), HasSubstr("z"));
}

TEST(Doors, EveryKindOfForbiddenName_IsFoundOnItsLine) {
  Findings found = doors("internal/x/x.cpp",
                         "auto t = std::chrono::steady_clock::now();\n"
                         "std::this_thread::sleep_for(1s);\n"
                         "std::random_device d;\n"
                         "int r = rand();\n"
                         "auto p = getenv(\"A\");\n"
                         "int fd = ::open(path, 0);\n"
                         "std::ifstream in(path);\n"
                         "std::filesystem::remove(path);\n"
                         "asio::ip::tcp::socket s(loop);\n"
                         "std::thread w;\n"
                         "std::mutex m;\n"
                         "auto f = std::async(job);\n"
                         "asio::steady_timer timer(loop);\n"
                         "tcp::resolver names(loop);\n"
                         "getaddrinfo(a, b, c, d);\n"
                         "auto* u = getpwnam(\"u\");\n"
                         "asio::co_spawn(loop, task(), asio::detached);\n"
                         "beast::tcp_stream stream(loop);\n"
                         "return time(nullptr);\n"
                         "std::exit(1);\n"
                         "int s2 = ::socket(1, 2, 3);\n");
  std::vector<std::size_t> expected;
  for (std::size_t line = 1; line <= 21; ++line) {
    expected.push_back(line);
    if (line == 17) expected.push_back(line);  // two names
  }
  EXPECT_EQ(lines(found), expected) << to_text(found);
}

TEST(Doors, NamesThatOnlyLookAlike_Pass) {
  EXPECT_THAT(doors("internal/x/x.cpp",
                    "// std::thread and getenv\n"
                    "auto s = \"std::mutex\";\n"
                    "auto f = fs.open(path, OpenMode::read);\n"
                    "Result<void> open(std::string path);\n"
                    "Mutex mutex(env);\n"
                    "co_await sleep_for(env, d);\n"
                    "UnixMillis time(5);\n"
                    "row.time(3);\n"
                    "co_await narad::connect(env, to);\n"
                    "int socket = 1; thread(1);\n"
                    "Log::open(path);\n"),
              IsEmpty());
}

TEST(Doors, ForbiddenHeaders_AreFound) {
  EXPECT_THAT(lines(doors("pkg/x/x.h",
                          "#pragma once\n#include <thread>\n#include <string>\n"
                          "#include <sys/socket.h>\n#  include <boost/asio/ip/tcp.hpp>\n")),
              ElementsAre(2, 4, 5));
}

TEST(Doors, RealDoorsAndCommands_MayNameTheOutside) {
  std::string text = "#include <thread>\nstd::thread t; auto e = getenv(\"A\");\n";
  EXPECT_THAT(doors("pkg/env/real/x.cpp", text), IsEmpty());
  EXPECT_THAT(doors("cmd/narad/x.cpp", text), IsEmpty());
}

TEST(Doors, Tests_MayReadTestdataButNotSleep) {
  Findings found = doors("pkg/x/x_test.cpp",
                         "#include <fstream>\nstd::ifstream in(\"testdata/a\");\n"
                         "std::this_thread::yield();\n");
  EXPECT_THAT(lines(found), ElementsAre(3));
  EXPECT_THAT(doors("pkg/x/x_bench.cpp", "auto t = std::chrono::steady_clock::now();\n"),
              IsEmpty());
}

const LinkGraph kGraph = parse_link_graph(
    "pkg/base:  | \npkg/env: pkg/base | \npkg/sim: pkg/env | \npkg/env/real: pkg/env | \n"
    "internal/a: pkg/env;internal/b | pkg/sim\ninternal/b: pkg/base | \n");
Findings includes(std::string path, std::string text) {
  return check_includes({{std::move(path), std::move(text)}}, kGraph);
}

TEST(LinkGraph, LinesOfABuild_Parse) {
  EXPECT_EQ(kGraph.directories.size(), 6u);
  EXPECT_THAT(kGraph.directories.at("internal/a").deps, ElementsAre("pkg/env", "internal/b"));
  EXPECT_THAT(kGraph.directories.at("internal/a").test_deps, ElementsAre("pkg/sim"));
}

TEST(Includes, UndeclaredDirectory_IsFoundAndTransitiveOnePasses) {
  EXPECT_THAT(lines(includes("internal/a/x.cpp",
                             "#include \"internal/a/x.h\"\n#include \"pkg/base/ids.h\"\n"
                             "#include \"internal/c/y.h\"\n#include \"pkg/sim/sim.h\"\n")),
              ElementsAre(3, 4));
}

TEST(Includes, TestDependency_IsForTestsOnly) {
  EXPECT_THAT(includes("internal/a/x_test.cpp", "#include \"pkg/sim/sim.h\"\n"), IsEmpty());
  EXPECT_THAT(includes("internal/a/test_x.h", "#include \"pkg/sim/sim.h\"\n"), IsEmpty());
  EXPECT_THAT(lines(includes("internal/a/x.cpp", "#include \"pkg/sim/sim.h\"\n")), ElementsAre(1));
  EXPECT_THAT(lines(includes("internal/a/x.cpp", "#include \"internal/a/test_x.h\"\n")),
              ElementsAre(1));
  EXPECT_THAT(includes("internal/a/x_test.cpp", "#include \"internal/a/test_x.h\"\n"), IsEmpty());
}

TEST(Includes, ForbiddenDirections_AreFound) {
  EXPECT_THAT(lines(includes("pkg/env/x.h", "#include \"internal/b/y.h\"\n")), ElementsAre(1));
  EXPECT_THAT(lines(includes("internal/a/x.h", "#include \"cmd/narad/y.h\"\n")), ElementsAre(1));
  EXPECT_THAT(lines(includes("pkg/sim/x.h", "#include \"pkg/env/real/y.h\"\n")), ElementsAre(1));
  EXPECT_THAT(lines(includes("pkg/env/real/x.h", "#include \"pkg/sim/y.h\"\n")), ElementsAre(1));
}

TEST(Includes, NotNamedFromTheRoot_IsFound) {
  EXPECT_THAT(lines(includes("internal/a/x.h", "#include \"x.h\"\n#include <pkg/base/ids.h>\n")),
              ElementsAre(1, 2));
}

TEST(Cores, AsioThroughAHeader_IsFoundAtTheIncludeOfTheCore) {
  Tree tree = {{"internal/a/core.h", "#pragma once\n#include \"internal/a/mid.h\"\n"},
               {"internal/a/mid.h", "#include <boost/asio/post.hpp>\n"},
               {"internal/a/runner.h", "#include <boost/asio/post.hpp>\n"}};
  Findings found = check_cores(tree, "# cores\ninternal/a/core.h\n");
  ASSERT_THAT(lines(found), ElementsAre(2));
  EXPECT_THAT(found[0].text, HasSubstr("through internal/a/mid.h"));
}

TEST(Cores, FileDoorAndSqlite_AreFound) {
  Tree tree = {{"internal/a/core.cpp", "#include \"pkg/env/fs.h\"\n#include <sqlite3.h>\n"}};
  EXPECT_THAT(lines(check_cores(tree, "internal/a/*")), ElementsAre(1, 2));
}

TEST(Cores, ListedButMissingFile_IsFound) {
  EXPECT_EQ(check_cores({}, "internal/a/gone.h").size(), 1u);
}

TEST(Shape, HeaderWithoutPragma_IsFound) {
  EXPECT_THAT(lines(check_shape({{"pkg/x/x.h", "// text\n#pragma once\n"}})), ElementsAre(1));
  EXPECT_THAT(check_shape({{"pkg/x/x.h", "#pragma once\n// text\n"}}), IsEmpty());
}

TEST(Shape, FileOverTheLimit_IsFound) {
  std::string text;
  for (std::size_t i = 0; i < kLinesMax; ++i) text += "x;\n";
  EXPECT_THAT(check_shape({{"pkg/x/x.cpp", text}}), IsEmpty());
  EXPECT_EQ(check_shape({{"pkg/x/x.cpp", text + "x;\n"}}).size(), 1u);
}

TEST(Words, UnfinishedWorkAndMachinePaths_AreFound) {
  Findings found = check_words({{"docs/x.md", std::string("fine\n// TO") + "DO later\n/ho" +
                                                  "me/me/x\nTO" + "DOS is another word\n"}});
  EXPECT_THAT(lines(found), ElementsAre(2, 3));
}

TEST(Readmes, DirectoryWithSourcesAndNoReadme_IsFound) {
  Findings found =
      check_readmes({{"pkg/x/x.h", ""}, {"pkg/y/y.h", ""}, {"pkg/y/README.md", "y\n"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, "pkg/x");
}

TEST(TestNames, TooShortDisabledOrOverloadedNames_AreFound) {
  std::string text =
      "TEST(Log, Works) {}\n"
      "TEST(Log, TornTail_IsDropped) {}\n"
      "TEST(Log, TornTailIsDropped) {}\n"
      "TEST(Log, DISABLED_TornTail_IsDropped) {}\n"
      "TEST_F(Move, OWN_1_OWN_2_OWN_3_holds) {}\n"
      "TEST_F(Move, OWN_1_OWN_2_OWN_3_OWN_4_holds) {}\n";
  EXPECT_THAT(lines(check_test_names({{"pkg/x/x_test.cpp", text}})), ElementsAre(1, 4, 6));
}

TEST(LongFunctions, MoreThanAScreen_IsAdvised) {
  std::string body;
  for (std::size_t i = 0; i < kFunctionLinesMax; ++i) body += "  x();\n";
  EXPECT_THAT(lines(advise_long_functions({{"pkg/x/x.cpp", "void f() {\n" + body + "}\n"}})),
              ElementsAre(1));
  EXPECT_THAT(advise_long_functions({{"pkg/x/x.cpp", "void f() {\n  x();\n}\n"}}), IsEmpty());
}

TEST(Requirements, IdsInTestNames_AreHeldAgainstTheList) {
  Tree tree = {{"internal/a/a_test.cpp",
                "TEST(Freeze, FRZ_1_arms_one_partition) {}\n"
                "TEST(Sweep, SWP_6a_quarantines) {}\n"
                "TEST(Freeze, FRZ_99_is_unknown) {}\n"
                "TEST(Other, ABC_1_is_no_area_of_the_list) {}\n"}};
  Coverage c = cover_requirements(tree, "# list\nFRZ-1 one\nFRZ-2 two\nSWP-6a six\n");
  EXPECT_THAT(c.listed, ElementsAre("FRZ-1", "FRZ-2", "SWP-6a"));
  EXPECT_THAT(c.uncovered, ElementsAre("FRZ-2"));
  EXPECT_THAT(lines(c.findings), ElementsAre(3));
}

}  // namespace
}  // namespace narad::tidy

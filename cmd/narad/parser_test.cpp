#include "cmd/narad/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "cmd/narad/serve_words.h"
#include "pkg/base/text.h"
#include "pkg/config/config.h"

namespace narad::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Parsed parse_line(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return parse(words);
}

TEST(Parser, FlagsAndOperands_MayBeInterleaved) {
  Parsed p = parse_line("-s http://a pub --count 3 orders -k=k1 hello --rate=7");
  ASSERT_TRUE(p.arguments) << p.err;
  EXPECT_EQ(p.arguments->path().text(), "narad pub");
  EXPECT_THAT(p.arguments->operands(), ElementsAre("orders", "hello"));
  EXPECT_EQ(p.arguments->text("server"), "http://a");
  EXPECT_EQ(p.arguments->integer("count"), 3);
  EXPECT_EQ(p.arguments->integer("rate"), 7);
  EXPECT_EQ(p.arguments->text("key"), "k1");
  EXPECT_EQ(p.arguments->integer("partition"), -1);
  EXPECT_FALSE(p.arguments->given("partition"));
}

TEST(Parser, NegativeNumbersAndDash_AreValues) {
  Parsed p = parse_line("replay orders --partition 2 --from -1 --to=-1");
  ASSERT_TRUE(p.arguments) << p.err;
  EXPECT_EQ(p.arguments->integer("from"), -1);
  Parsed dash = parse_line("pub orders -");
  ASSERT_TRUE(dash.arguments) << dash.err;
  EXPECT_EQ(dash.arguments->operand(1), "-");
  Parsed after = parse({"pub", "orders", "--", "-5"});
  ASSERT_TRUE(after.arguments) << after.err;
  EXPECT_EQ(after.arguments->operand(1), "-5");
}

TEST(Parser, TopicNamedLikeACommand_IsAnOperand) {
  Parsed p = parse_line("pub bench topic");
  ASSERT_TRUE(p.arguments) << p.err;
  EXPECT_EQ(p.arguments->path().text(), "narad pub");
  EXPECT_THAT(p.arguments->operands(), ElementsAre("bench", "topic"));
  Parsed info = parse_line("topics info info");
  ASSERT_TRUE(info.arguments) << info.err;
  EXPECT_EQ(info.arguments->path().text(), "narad topic info");
  EXPECT_THAT(info.arguments->operands(), ElementsAre("info"));
}

TEST(Parser, EmptyValue_IsTheSameAsNone) {
  Parsed p = parse_line("pub --key= orders hello");
  ASSERT_TRUE(p.arguments) << p.err;
  EXPECT_THAT(p.arguments->operands(), ElementsAre("orders", "hello"));
  EXPECT_EQ(p.arguments->text("key"), "");
  Parsed apart = parse({"pub", "--key", "", "orders", "hello"});
  ASSERT_TRUE(apart.arguments) << apart.err;
  EXPECT_EQ(apart.arguments->text("key"), "");
  EXPECT_EQ(apart.arguments->operand(0), "orders");
}

TEST(Parser, RepeatedFlag_IsAListOrTheLastValue) {
  Parsed p = parse_line("user add ann --user-password a --grant produce:a --grant consume:b,c");
  ASSERT_TRUE(p.arguments) << p.err;
  EXPECT_THAT(p.arguments->list("grant"), ElementsAre("produce:a", "consume:b,c"));
  Parsed twice = parse_line("pub t m --count 1 --count 2");
  ASSERT_TRUE(twice.arguments) << twice.err;
  EXPECT_EQ(twice.arguments->integer("count"), 2);
}

TEST(Parser, ContextFlags_AreItsOwn) {
  Parsed p = parse_line("ctx add prod --server http://x --user u");
  ASSERT_TRUE(p.arguments) << p.err;
  EXPECT_EQ(p.arguments->text("server"), "http://x");
  EXPECT_NE(parse_line("ctx add prod -s http://x").status, 0);
}

TEST(Parser, GroupWithoutCommand_PrintsHelpAndSucceeds) {
  for (const char* line : {"", "topic", "topic nonsense", "cluster", "--help", "topic --help"}) {
    Parsed p = parse_line(line);
    EXPECT_FALSE(p.arguments) << line;
    EXPECT_EQ(p.status, 0) << line;
    EXPECT_THAT(p.out, HasSubstr("Commands:")) << line;
    EXPECT_EQ(p.err, "") << line;
  }
}

TEST(Parser, HelpOfACommand_ListsItsFlags) {
  Parsed p = parse_line("pub -h");
  EXPECT_EQ(p.status, 0);
  EXPECT_THAT(p.out, HasSubstr("narad pub TOPIC [MESSAGE] [flags]"));
  EXPECT_THAT(p.out, HasSubstr("-k, --key KEY"));
  EXPECT_THAT(p.out, HasSubstr("--server URL"));
}

TEST(Parser, ClassicMistakes_AnswerOne) {
  EXPECT_EQ(parse_line("nonsense").status, 1);
  EXPECT_THAT(parse_line("nonsense").err, StartsWith("unknown command \"nonsense\" for \"narad\""));
  EXPECT_EQ(parse_line("pub").status, 1);
  EXPECT_THAT(parse_line("pub").err, StartsWith("narad pub needs TOPIC [MESSAGE]"));
  EXPECT_EQ(parse_line("pub t m --bogus").status, 1);
  EXPECT_THAT(parse_line("pub t m --bogus").err, StartsWith("unknown flag: --bogus"));
  EXPECT_EQ(parse_line("pub t m extra").status, 1);
  EXPECT_EQ(parse_line("pub t m --count x").status, 1);
  EXPECT_THAT(parse_line("pub t m --count x").err, HasSubstr("--count"));
  EXPECT_EQ(parse_line("topic add t --retention 10").status, 1);
  EXPECT_EQ(parse_line("pub t --key").status, 1);
}

TEST(Parser, OperatorMistakes_AnswerTwo) {
  EXPECT_EQ(parse_line("cluster members --bogus").status, 2);
  EXPECT_EQ(parse_line("cluster decommission").status, 2);
  EXPECT_EQ(parse_line("serve --bogus=1").status, 2);
  EXPECT_EQ(parse_line("cluster moves -o yaml").status, 2);
  EXPECT_TRUE(parse_line("cluster moves -o json").arguments);
  EXPECT_EQ(parse_line("fsck").status, 16);
  EXPECT_EQ(parse_line("fsck wal a b").status, 16);
}

TEST(ServeWords, GoSyntax_IsNormalised) {
  EXPECT_THAT(go_flag_words({"serve", "-port", "80", "--addr=:1", "-h", "-log-level=info", "rest",
                             "-port", "9"}),
              ElementsAre("serve", "--port=80", "--addr=:1", "--help", "--log-level=info"));
  EXPECT_THAT(go_flag_words({"serve", "--", "-port"}), ElementsAre("serve"));
  Parsed p = parse(go_flag_words({"serve", "-node-id=n1", "--config=", "-port", "81"}));
  ASSERT_TRUE(p.arguments) << p.err;
  EXPECT_EQ(p.arguments->text("node-id"), "n1");
  EXPECT_EQ(p.arguments->text("config"), "");
  EXPECT_EQ(p.arguments->integer("port"), 81);
}

void visit(const CommandSpec& command, const std::function<void(const CommandSpec&)>& f) {
  f(command);
  for (const CommandSpec& child : command.children) visit(child, f);
}

TEST(CommandTable, EveryCommand_ExplainsItselfAndHasDistinctNames) {
  visit(root_command(), [](const CommandSpec& c) {
    EXPECT_FALSE(c.summary.empty()) << c.name;
    EXPECT_TRUE(c.run != nullptr || !c.children.empty()) << c.name;
    std::set<std::string_view> names;
    for (const FlagSpec& f : c.flags) {
      EXPECT_TRUE(names.insert(f.name).second) << c.name << " --" << f.name;
      EXPECT_FALSE(f.help.empty()) << c.name << " --" << f.name;
      EXPECT_NE(f.kind == FlagKind::boolean, !f.value_name.empty()) << c.name << " --" << f.name;
    }
    std::set<std::string_view> children;
    for (const CommandSpec& child : c.children) {
      EXPECT_TRUE(children.insert(child.name).second) << child.name;
    }
  });
}

TEST(Completion, EveryShell_KnowsCommandsAndFlags) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    std::string script = completion_script(shell);
    EXPECT_THAT(script, HasSubstr("decommission")) << shell;
    EXPECT_THAT(script, HasSubstr("max-in-flight")) << shell;
  }
  EXPECT_EQ(completion_script("csh"), "");
}

TEST(ManualPage, EveryCommand_HasASection) {
  std::string page = manual_page();
  visit(root_command(), [&](const CommandSpec& c) {
    if (c.run != nullptr) EXPECT_THAT(page, HasSubstr(c.name)) << c.name;
  });
  EXPECT_THAT(page, StartsWith(".TH NARAD 1\n"));
}

TEST(ManualPage, InTheRepository_IsWhatTheBinaryPrints) {
  std::ifstream in("man/narad.1");
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), manual_page()) << "narad man > man/narad.1";
}

TEST(Help, OfServe_ListsEverySetting) {
  std::string text = parse_line("serve --help").out;
  for (const SettingInfo& setting : describe_settings()) {
    EXPECT_THAT(text, HasSubstr(setting.path));
  }
}

}  // namespace
}  // namespace narad::cli

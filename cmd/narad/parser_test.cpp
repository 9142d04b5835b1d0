#include "cmd/narad/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <functional>
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

TEST(Parser, AGroupThatIsACommand_HasBoth) {
  Parsed list = parse_line("cluster moves --watch --topic orders");
  ASSERT_TRUE(list.arguments) << list.err;
  EXPECT_EQ(list.arguments->path().text(), "narad cluster moves");
  EXPECT_TRUE(list.arguments->flag("watch"));
  EXPECT_EQ(list.arguments->integer("limit"), 20);
  Parsed abort = parse_line("cluster moves abort orders 3 --target n4");
  ASSERT_TRUE(abort.arguments) << abort.err;
  EXPECT_EQ(abort.arguments->path().text(), "narad cluster moves abort");
  EXPECT_THAT(abort.arguments->operands(), ElementsAre("orders", "3"));
  EXPECT_EQ(abort.arguments->text("target"), "n4");
  Parsed all = parse_line("cluster moves abort --all -y");
  ASSERT_TRUE(all.arguments) << all.err;
  EXPECT_TRUE(all.arguments->flag("all") && all.arguments->flag("yes"));
  EXPECT_TRUE(all.arguments->operands().empty());
  EXPECT_EQ(parse_line("cluster moves abort orders 3 4").status, 2);
  Parsed start = parse_line("cluster moves start orders 3 --to n4 --disk d2");
  ASSERT_TRUE(start.arguments) << start.err;
  EXPECT_EQ(start.arguments->text("disk"), "d2");
  EXPECT_EQ(parse_line("cluster moves start orders").status, 2);
  EXPECT_EQ(parse_line("cluster moves orders").status, 2);
  EXPECT_EQ(parse_line("cluster moves --history --limit 1001").status, 2);
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
  EXPECT_EQ(parse_line("cluster explain orders").status, 2);
  EXPECT_EQ(parse_line("cluster safe-to-stop").status, 2);
  EXPECT_EQ(parse_line("cluster quarantine n1").status, 2);
  EXPECT_EQ(parse_line("cluster rebalance now").status, 2);
  EXPECT_EQ(parse_line("cluster throttle 1MB 2MB").status, 2);
  EXPECT_TRUE(parse_line("cluster decommission n1 --wait --wal-lost").arguments);
  EXPECT_EQ(parse_line("serve --bogus=1").status, 2);
  EXPECT_EQ(parse_line("cluster moves -o yaml").status, 2);
  EXPECT_TRUE(parse_line("cluster moves -o json").arguments);
  EXPECT_EQ(parse_line("fsck").status, 16);
  EXPECT_EQ(parse_line("fsck wal a b").status, 16);
}

void visit(const CommandPath& path, const std::function<void(const CommandPath&)>& f) {
  if (path.leaf().run != nullptr) f(path);
  for (const CommandSpec& child : path.leaf().children) {
    CommandPath next = path;
    next.steps.push_back(&child);
    visit(next, f);
  }
}

// The words of a command with as many operands as it needs.
std::vector<std::string> words_of(const CommandPath& path) {
  std::vector<std::string> words;
  for (std::size_t i = 1; i < path.steps.size(); ++i) words.emplace_back(path.steps[i]->name);
  for (std::size_t i = 0; i < path.leaf().operands_min; ++i) words.push_back("operand");
  return words;
}

int usage_status(const CommandSpec& command) {
  if (command.manners == Manners::fsck) return 16;
  return command.manners == Manners::operators ? 2 : 1;
}

// Values that a flag of that kind must refuse, and some that it must take.
struct Values {
  std::vector<std::string> good, bad;
};
Values values_for(const FlagSpec& f) {
  switch (f.kind) {
    case FlagKind::integer: {
      Values v{{cat(f.min), cat(f.max)}, {"", "x", "1.5", "1e3", "0x1", "+1", "1 "}};
      v.bad.push_back(cat(f.min - 1));
      v.bad.push_back("99999999999999999999");
      v.bad.push_back("-99999999999999999999");
      if (f.max < INT64_MAX) v.bad.push_back(cat(f.max + 1));
      return v;
    }
    case FlagKind::duration:
      return {{"0", "1ms", "168h", "1h30m"}, {"", "x", "10", "-1s", "1us", "99999999h", "1d"}};
    case FlagKind::choice:
      return {{std::string(f.value_name.substr(0, f.value_name.find('|')))}, {"x", "TEXT"}};
    default:
      return {};
  }
}

// No value is ever taken for another one, or for none: every flag of every command.
TEST(CommandTable, ValuesOutOfRange_AreUsageErrors) {
  int flags = 0;
  visit({{&root_command()}}, [&](const CommandPath& path) {
    for (const FlagSpec& f : path.leaf().flags) {
      Values values = values_for(f);
      flags += !values.bad.empty();
      for (const std::string& value : values.good) {
        auto words = words_of(path);
        words.push_back(cat("--", f.name));
        words.push_back(value);
        Parsed p = parse(words);
        EXPECT_TRUE(p.arguments) << path.text() << " --" << f.name << ' ' << value << ": " << p.err;
      }
      for (const std::string& value : values.bad) {
        auto words = words_of(path);
        words.push_back(cat("--", f.name));
        words.push_back(value);
        Parsed p = parse(words);
        EXPECT_FALSE(p.arguments) << path.text() << " --" << f.name << " '" << value << "'";
        EXPECT_EQ(p.status, usage_status(path.leaf())) << path.text();
        EXPECT_THAT(p.err, HasSubstr(cat("--", f.name))) << path.text() << " '" << value << "'";
        EXPECT_THAT(p.err, HasSubstr(cat("Run '", path.text(), " --help'")));
      }
    }
  });
  EXPECT_GT(flags, 20);
}

TEST(CommandTable, WrongWords_AreUsageErrors) {
  visit({{&root_command()}}, [&](const CommandPath& path) {
    auto expect_refused = [&](const std::vector<std::string>& words) {
      Parsed p = parse(words);
      EXPECT_FALSE(p.arguments) << path.text();
      EXPECT_EQ(p.status, usage_status(path.leaf())) << path.text() << ": " << p.err;
      EXPECT_THAT(p.err, HasSubstr(path.text()));
    };
    auto words = words_of(path);
    auto unknown = words;
    unknown.push_back("--no-such-flag");
    expect_refused(unknown);
    if (path.leaf().operands_max < 10) {
      auto many = words;
      many.insert(many.end(), path.leaf().operands_max - path.leaf().operands_min + 1, "extra");
      expect_refused(many);
    }
    if (path.leaf().operands_min > 0) {
      words.pop_back();
      // A group that is a command too finds another command then, or says what it needs.
      expect_refused(words);
    }
  });
}

TEST(ServeWords, GoSyntax_IsNormalised) {
  EXPECT_THAT(go_flag_words({"serve", "-port", "80", "--addr=:1", "-h", "-log-level=info", "rest",
                             "-port", "9"}),
              ElementsAre("serve", "--port=80", "--addr=:1", "--help", "--log-level=info"));
  EXPECT_THAT(go_flag_words({"serve", "--", "-port"}), ElementsAre("serve"));
  EXPECT_THAT(go_flag_words({"serve", "-bootstrap", "-port", "80"}),
              ElementsAre("serve", "--bootstrap", "--port=80"));
  Parsed p = parse(go_flag_words({"serve", "-node-id=n1", "--config=", "-port", "81"}));
  ASSERT_TRUE(p.arguments) << p.err;
  EXPECT_EQ(p.arguments->text("node-id"), "n1");
  EXPECT_EQ(p.arguments->text("config"), "");
  EXPECT_EQ(p.arguments->integer("port"), 81);
}

void visit_all(const CommandSpec& command, const std::function<void(const CommandSpec&)>& f) {
  f(command);
  for (const CommandSpec& child : command.children) visit_all(child, f);
}

TEST(CommandTable, EveryCommand_ExplainsItselfAndHasDistinctNames) {
  visit_all(root_command(), [](const CommandSpec& c) {
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
    EXPECT_THAT(script, HasSubstr("abort")) << shell << ": a command of a group of a group";
    EXPECT_THAT(script, HasSubstr("target")) << shell;
  }
  EXPECT_EQ(completion_script("csh"), "");
}

TEST(ManualPage, EveryCommand_HasASection) {
  std::string page = manual_page();
  visit_all(root_command(), [&](const CommandSpec& c) {
    std::string name(c.name);  // whose hyphens are no minus signs on a page
    for (std::size_t at = 0; (at = name.find('-', at)) != name.npos; at += 2) name.insert(at, "\\");
    if (c.run != nullptr) EXPECT_THAT(page, HasSubstr(name)) << c.name;
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

#include "internal/security/audit.h"

#include <gtest/gtest.h>

#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::security {
namespace {

constexpr const char* kFile = "/log/audit.jsonl";

AuditEvent event(std::string target, int status = 201) {
  AuditEvent e;
  e.time = UnixMillis(1'783'615'000'123);
  e.user = "admin";
  e.remote = "127.0.0.1:4242";
  e.action = "create_topic";
  e.target = std::move(target);
  e.status = status;
  return e;
}

struct World {
  sim::Solo solo;
  Audit audit{solo.env(), kFile};

  World() { NARAD_ASSERT(make_directories(solo.env().fs, "/log").has_value()); }
  ~World() {
    solo.run([this](Env&) { return audit.stop(); });
  }
  Result<void> open() {
    return solo.run([this](Env&) { return audit.open(); });
  }
  void record(AuditEvent e) {
    solo.run([this, e](Env&) { return audit.record(e); });
  }
  std::string text(const std::string& path = kFile) {
    return to_text(read_file(solo.env().fs, path, 1 << 20).value());
  }
};

TEST(Audit, Line_SaysWhoFromWhereWhatAndHow) {
  EXPECT_EQ(audit_line(event("orders")),
            R"({"time":"2026-07-09T16:36:40.123Z","user":"admin","remote":"127.0.0.1:4242",)"
            R"("action":"create_topic","target":"orders","outcome":"done","status":201})");
  AuditEvent e = event("a\"b\n", 403);
  e.error = "no";
  EXPECT_TRUE(audit_line(e).ends_with(
      R"("target":"a\"b\n","outcome":"refused","status":403,"error":"no"})"));
  EXPECT_EQ(audit_line(e).find('\n'), std::string::npos) << "one line whatever is in it";
  EXPECT_NE(audit_line(event("x", 503)).find(R"("outcome":"failed")"), std::string::npos);
}

TEST(Audit, Lines_AreAppendedInOrderAndSurviveAPowerCut) {
  World w;
  ASSERT_TRUE(w.open());
  w.record(event("a"));
  w.record(event("b"));
  const std::string expected = audit_line(event("a")) + "\n" + audit_line(event("b")) + "\n";
  EXPECT_EQ(w.text(), expected);
  w.solo.machine.disk().power_cycle();
  EXPECT_EQ(w.text(), expected);
}

TEST(Audit, RenamedFile_IsLeftAtReopen) {
  World w;
  ASSERT_TRUE(w.open());
  w.record(event("a"));
  ASSERT_TRUE(w.solo.env().fs.rename(kFile, "/log/audit.1"));
  w.record(event("b"));
  ASSERT_TRUE(w.solo.run([&](Env&) { return w.audit.reopen(); }));
  w.record(event("c"));
  EXPECT_EQ(w.text("/log/audit.1"), audit_line(event("a")) + "\n" + audit_line(event("b")) + "\n");
  EXPECT_EQ(w.text(), audit_line(event("c")) + "\n");
}

TEST(Audit, PathThatCannotBeOpened_IsFoundAtStart) {
  sim::Solo solo;
  Audit audit(solo.env(), "/nowhere/audit");
  const auto opened = solo.run([&](Env&) { return audit.open(); });
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text().find("audit.file"), std::string::npos);
  solo.run([&](Env&) { return audit.stop(); });
}

TEST(Audit, FullDisk_LogsTheLineAndGoesOn) {
  World w;
  ASSERT_TRUE(w.open());
  w.solo.machine.disk().fail_call(sim::FsCall::pwrite, 1, false, 28 /* ENOSPC */);
  w.record(event("lost"));
  EXPECT_EQ(w.solo.machine.log().count("an audit line could not be written"), 1u);
  w.record(event("kept"));
  EXPECT_EQ(w.text(), audit_line(event("kept")) + "\n");
}

TEST(Audit, NoFile_RecordsNothing) {
  sim::Solo solo;
  Audit audit(solo.env(), "");
  EXPECT_FALSE(audit.enabled());
  ASSERT_TRUE(solo.run([&](Env&) { return audit.open(); }));
  solo.run([&](Env&) { return audit.record(event("x")); });
  solo.run([&](Env&) { return audit.stop(); });
}

}  // namespace
}  // namespace narad::security

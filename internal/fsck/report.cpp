#include "internal/fsck/report.h"

#include <algorithm>

#include "pkg/base/text.h"

namespace narad::fsck {
namespace {

// "bytes 10 to 19", "byte 10".
std::string words(std::string_view one, std::string_view many, const Span& span) {
  if (span.to == span.from + 1) return cat(one, " ", span.from);
  return cat(many, " ", span.from, " to ", span.to - 1);
}

std::string counted(std::uint64_t n, std::string_view one, std::string_view many) {
  return cat(n, " ", n == 1 ? one : many);
}

void member(std::string& out, std::string_view name, std::string_view text) {
  append_json_string(out, name);
  out += ':';
  append_json_string(out, text);
}

void member(std::string& out, std::string_view name, const std::optional<Span>& span) {
  if (!span) return;
  out += cat(",\"", name, "\":{\"from\":", span->from, ",\"to\":", span->to, "}");
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::note:
      return "note";
    case Kind::problem:
      return "problem";
    case Kind::unchecked:
      return "unchecked";
  }
  return "unknown";
}

Finding& Report::add(Kind kind, std::string where, std::string what) {
  return findings_.emplace_back(kind, std::move(where), std::move(what));
}
Finding& Report::note(std::string where, std::string what) {
  return add(Kind::note, std::move(where), std::move(what));
}
Finding& Report::problem(std::string where, std::string what) {
  return add(Kind::problem, std::move(where), std::move(what));
}
Finding& Report::unchecked(std::string where, std::string what) {
  return add(Kind::unchecked, std::move(where), std::move(what));
}
Finding& Report::unchecked(std::string where, const Error& error) {
  return add(Kind::unchecked, std::move(where), cat("could not be checked: ", error.text()));
}

std::size_t Report::count(Kind kind) const {
  return static_cast<std::size_t>(
      std::count_if(findings_.begin(), findings_.end(),
                    [kind](const Finding& finding) { return finding.kind == kind; }));
}

int Report::result() const {
  return (count(Kind::problem) > 0 ? kProblems : kClean) |
         (count(Kind::unchecked) > 0 ? kUnchecked : kClean);
}

std::string Report::text() const {
  std::string out;
  for (const Finding& finding : findings_) {
    out += cat(to_string(finding.kind), ": ", finding.where, ": ", finding.what, "\n");
    std::vector<std::string> spans;
    if (finding.bytes) spans.push_back(words("byte", "bytes", *finding.bytes));
    if (finding.offsets) spans.push_back(words("offset", "offsets", *finding.offsets));
    if (finding.sequences) spans.push_back(words("record", "records", *finding.sequences));
    for (std::size_t n = 0; n < spans.size(); ++n) {
      out += cat(n == 0 ? "    " : ", ", spans[n], n + 1 == spans.size() ? "\n" : "");
    }
    if (!finding.remedy.empty()) out += cat("    what to do: ", finding.remedy, "\n");
  }
  std::string checked = counted(counters.partitions, "partition", "partitions");
  checked += cat(" with ", counted(counters.segments, "segment", "segments"));
  checked += cat(", ", counted(counters.wal_segments, "WAL segment", "WAL segments"));
  if (counters.wal_segments > 0) {
    checked += cat(" with ", counted(counters.wal_records, "intact record", "intact records"), ", ",
                   counters.wal_records_pending, " of them not handed over yet");
  }
  out += cat("checked: ", checked, "; ", counted(counters.files, "file", "files"), ", ",
             format_bytes(counters.bytes_read), " read\n");
  const std::size_t problems = count(Kind::problem);
  const std::size_t unchecked = count(Kind::unchecked);
  if (problems == 0 && unchecked == 0) return out + "clean\n";
  std::string verdict;
  if (problems > 0) verdict = counted(problems, "problem", "problems");
  if (unchecked > 0) {
    if (!verdict.empty()) verdict += "; ";
    verdict += cat(counted(unchecked, "thing", "things"), " could not be checked");
  }
  return out + verdict + "\n";
}

std::string Report::json() const {
  std::string out = cat("{\"version\":1,\"result\":", result(),
                        ",\"clean\":", result() == kClean ? "true" : "false", ",\"findings\":[");
  for (std::size_t n = 0; n < findings_.size(); ++n) {
    const Finding& finding = findings_[n];
    out += n == 0 ? "{" : ",{";
    member(out, "kind", to_string(finding.kind));
    out += ',';
    member(out, "where", finding.where);
    out += ',';
    member(out, "what", finding.what);
    if (!finding.remedy.empty()) {
      out += ',';
      member(out, "remedy", finding.remedy);
    }
    member(out, "bytes", finding.bytes);
    member(out, "offsets", finding.offsets);
    member(out, "sequences", finding.sequences);
    out += '}';
  }
  out += cat("],\"checked\":{\"files\":", counters.files, ",\"bytes_read\":", counters.bytes_read,
             ",\"topics\":", counters.topics, ",\"partitions\":", counters.partitions,
             ",\"segments\":", counters.segments, ",\"wal_segments\":", counters.wal_segments,
             ",\"wal_records\":", counters.wal_records,
             ",\"wal_records_pending\":", counters.wal_records_pending, "}}");
  return out;
}

}  // namespace narad::fsck

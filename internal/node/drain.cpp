#include "internal/node/drain.h"

#include <utility>

#include "pkg/base/text.h"
#include "pkg/env/fs.h"

namespace narad::node {
namespace {

constexpr Nanos kLookAgain = std::chrono::seconds(1);
constexpr std::string_view kFirstWord = "drain ";
constexpr std::uint64_t kFileBytesMax = 4096;

// "drain 17\n"; 0 if it is anything else.
RaftIndex parse(std::string_view text) {
  if (!text.starts_with(kFirstWord) || !text.ends_with('\n')) return RaftIndex(0);
  text.remove_prefix(kFirstWord.size());
  text.remove_suffix(1);
  return RaftIndex(parse_number<std::uint64_t>(text).value_or(0));
}

}  // namespace

Drain::Drain(Env& env, std::string node_id, metastore::Proposer& metastore, std::string data_dir,
             Backlog backlog)
    : env_(env),
      node_id_(std::move(node_id)),
      metastore_(metastore),
      path_(join_path(data_dir, "draining")),
      backlog_(std::move(backlog)),
      tasks_(env) {}

Task<void> Drain::start() {
  // The text of the file; nothing if there is none. What cannot be read counts as a file.
  auto job = [&fs = env_.fs, path = path_]() -> Result<std::optional<std::string>> {
    NARAD_TRY(bool there, exists(fs, path));
    if (!there) return std::optional<std::string>();
    NARAD_TRY(Bytes bytes, read_file(fs, path, kFileBytesMax));
    return std::optional<std::string>(std::string(as_chars(bytes)));
  };
  auto read = co_await blocking(env_, "drain file", std::move(job));
  const bool found = !read || read.value().has_value();
  if (found) {
    refusing_ = durable_ = file_ = true;
    drain_id_ = read ? parse(*read.value()) : RaftIndex(0);
    NARAD_LOG_INFO(env_.log,
                   "this node was being decommissioned when it stopped: it takes no messages from "
                   "clients until it hears otherwise",
                   {"drain", drain_id_}, {"file", path_},
                   {"error", read ? std::string() : std::string(read.error().text())});
  }
  tasks_.spawn("drain", follow());
}

Result<Drain::Admitted> Drain::admit() {
  if (!refusing_) return Admitted(this);
  return Error(Errc::unavailable,
               cat("node ", node_id_,
                   " is being decommissioned and takes no messages any more: produce to another "
                   "node"));
}

wire::DrainStatus Drain::status() const {
  wire::DrainStatus s;
  if (refusing_) s.drain_id = drain_id_;
  s.refuses_produce = refusing_ && durable_;
  s.unanswered = unanswered_;
  const std::optional<std::uint64_t> left = backlog_();
  s.wal_open = left.has_value();
  s.wal_records = left.value_or(0);
  return s;
}

Task<void> Drain::follow() {
  for (;;) {
    co_await follow_once();
    (void)co_await metastore_.changed().wait_for(kLookAgain);
  }
}

Task<void> Drain::follow_once() {
  const metastore::ViewPtr view = metastore_.view();
  const metastore::Member* member = view->members.find(node_id_);
  if (member != nullptr && member->draining) {
    const RaftIndex drain = member->drain_id;
    if (!refusing_) {
      NARAD_LOG_INFO(
          env_.log, "this node is being decommissioned: it takes no messages from clients any more",
          {"drain", drain});
    }
    if (refusing_ && drain_id_ == drain && durable_) co_return;
    refusing_ = true;
    if (drain_id_ != drain) durable_ = false;
    drain_id_ = drain;
    co_await remember(drain);
    co_return;
  }
  if (member == nullptr) co_return;  // not yet, or not any more: as it is
  // A state that is older than the drain says nothing about its end.
  const bool newer = drain_id_.value() > 0 ? view->applied >= drain_id_ : metastore_.caught_up();
  if (refusing_ && newer) {
    refusing_ = durable_ = false;
    drain_id_ = RaftIndex(0);
    NARAD_LOG_INFO(env_.log,
                   "the decommission of this node was cancelled: it takes messages again");
  }
  if (!refusing_ && file_) co_await forget();
}

Task<void> Drain::remember(RaftIndex drain_id) {
  file_ = true;
  auto job = [&fs = env_.fs, path = path_, text = cat(kFirstWord, drain_id, "\n")] {
    return replace_file(fs, path, as_bytes(text));
  };
  auto written = co_await blocking(env_, "drain file", std::move(job));
  if (written && refusing_ && drain_id_ == drain_id) durable_ = true;
  const std::string trouble = written ? std::string() : std::string(written.error().text());
  if (!trouble.empty() && trouble != trouble_) {
    NARAD_LOG_WARN(env_.log,
                   "that this node is being decommissioned cannot be written down; until it can, "
                   "it does not leave",
                   {"file", path_}, {"error", trouble});
  }
  trouble_ = trouble;
}

// Proof: the applied state holds the end of the drain that the file names, so nobody counts on it.
Task<void> Drain::forget() {
  auto job = [&fs = env_.fs, path = path_]() -> Result<void> {
    NARAD_TRY(bool there, exists(fs, path));
    if (!there) return ok();
    NARAD_TRY(fs.remove(path));
    return fs.sync_dir(parent_path(path));
  };
  auto removed = co_await blocking(env_, "drain file", std::move(job));
  if (removed) file_ = refusing_;
}

}  // namespace narad::node

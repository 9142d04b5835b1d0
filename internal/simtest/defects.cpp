#include "internal/simtest/defects.h"

namespace narad::simtest {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

class DefectiveFile final : public File {
 public:
  DefectiveFile(Defect defect, std::string path, std::unique_ptr<File> inner)
      : defect_(defect), path_(std::move(path)), inner_(std::move(inner)) {}
  Result<std::size_t> pread(std::span<std::byte> buffer, std::uint64_t offset) override {
    if (ignored()) return std::size_t{0};
    return inner_->pread(buffer, offset);
  }
  Result<std::size_t> pwrite(ByteView bytes, std::uint64_t offset) override {
    return inner_->pwrite(bytes, offset);
  }
  Result<std::size_t> pwritev(std::span<const ByteView> parts, std::uint64_t offset) override {
    return inner_->pwritev(parts, offset);
  }
  Result<void> truncate(std::uint64_t size) override { return inner_->truncate(size); }
  Result<void> allocate(std::uint64_t size) override { return inner_->allocate(size); }
  Result<void> sync() override {
    return forgets_sync() ? Result<void>(ok()) : answer(inner_->sync());
  }
  Result<void> datasync() override {
    return forgets_sync() ? Result<void>(ok()) : answer(inner_->datasync());
  }
  Result<std::uint64_t> size() override {
    return ignored() ? Result<std::uint64_t>(std::uint64_t{0}) : inner_->size();
  }
  Result<bool> try_lock() override { return inner_->try_lock(); }

 private:
  bool ignored() const {
    return defect_ == Defect::ack_journal_ignored && has(path_, "consumer.acks");
  }
  bool forgets_sync() const {
    switch (defect_) {
      case Defect::accept_before_sync:
        return has(path_, "/ingress/") && has(path_, ".wal");
      case Defect::commit_before_sync:
        return has(path_, "/topics/") && has(path_, ".log");
      case Defect::metastore_before_sync:
        return has(path_, "/metastore/");
      case Defect::ack_journal_not_synced:
        return has(path_, "consumer.acks");
      case Defect::staged_not_synced:
        return has(path_, "/.moves/") && has(path_, ".log");
      case Defect::replaced_before_sync:
        return has(path_, ".tmp");
      default:
        return false;
    }
  }
  Result<void> answer(Result<void> r) const {
    if (!r && defect_ == Defect::failed_sync_ignored) return ok();
    return r;
  }
  Defect defect_;
  std::string path_;
  std::unique_ptr<File> inner_;
};

class DefectiveFs final : public FileSystem {
 public:
  DefectiveFs(Defect defect, FileSystem& inner) : defect_(defect), inner_(inner) {}
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    NARAD_TRY(auto file, inner_.open(path, mode));
    return std::unique_ptr<File>(std::make_unique<DefectiveFile>(defect_, path, std::move(file)));
  }
  Result<void> remove(const std::string& path) override { return inner_.remove(path); }
  Result<void> rename(const std::string& from, const std::string& to) override {
    const bool set_aside = has(to, ".quarantine") && !has(from, ".quarantine");
    if (defect_ == Defect::displaced_copy_deleted && set_aside) return remove_tree(inner_, from);
    return inner_.rename(from, to);
  }
  Result<void> mkdir(const std::string& path) override { return inner_.mkdir(path); }
  Result<void> rmdir(const std::string& path) override { return inner_.rmdir(path); }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return inner_.list(path);
  }
  Result<FileStat> stat(const std::string& path) override { return inner_.stat(path); }
  Result<void> set_mtime(const std::string& path, UnixMillis mtime) override {
    return inner_.set_mtime(path, mtime);
  }
  Result<void> sync_dir(const std::string& path) override {
    if (defect_ == Defect::no_directory_sync) return ok();
    return inner_.sync_dir(path);
  }
  Result<DiskSpace> space(const std::string& path) override { return inner_.space(path); }

 private:
  Defect defect_;
  FileSystem& inner_;
};

class DefectiveTarget final : public dispatch::CommitTarget {
 public:
  DefectiveTarget(Defect defect, dispatch::CommitTarget& inner) : defect_(defect), inner_(inner) {}
  dispatch::Route route(const TopicPartition& partition, Incarnation incarnation) const override {
    return inner_.route(partition, incarnation);
  }
  Task<Result<CommitOutcome>> commit(TopicPartition partition, CommitBatch batch) override {
    if (defect_ == Defect::double_append) batch.origin = OriginId(0);
    if (defect_ == Defect::batch_cut_short && batch.records.size() > 1) batch.records.pop_back();
    auto outcome = co_await inner_.commit(std::move(partition), std::move(batch));
    if (!outcome && defect_ == Defect::failure_taken_for_success) co_return CommitOutcome{};
    co_return outcome;
  }
  Task<Result<bool>> confirm_gone(std::string topic, Incarnation incarnation) override {
    return inner_.confirm_gone(std::move(topic), incarnation);
  }
  Event& routing_changed() override { return inner_.routing_changed(); }

 private:
  Defect defect_;
  dispatch::CommitTarget& inner_;
};

}  // namespace

const std::vector<DefectInfo>& all_defects() {
  static const std::vector<DefectInfo> all{
      {Defect::accept_before_sync, "accept_before_sync"},
      {Defect::commit_before_sync, "commit_before_sync"},
      {Defect::metastore_before_sync, "metastore_before_sync"},
      {Defect::no_directory_sync, "no_directory_sync"},
      {Defect::ack_journal_not_synced, "ack_journal_not_synced"},
      {Defect::replaced_before_sync, "replaced_before_sync"},
      {Defect::ack_journal_ignored, "ack_journal_ignored"},
      {Defect::failed_sync_ignored, "failed_sync_ignored"},
      {Defect::checkpoint_too_high, "checkpoint_too_high"},
      {Defect::double_append, "double_append"},
      {Defect::failure_taken_for_success, "failure_taken_for_success"},
      {Defect::batch_cut_short, "batch_cut_short"},
      {Defect::flip_without_epoch, "flip_without_epoch", true},
      {Defect::flip_without_move_id, "flip_without_move_id", true},
      {Defect::promote_without_mark, "promote_without_mark", true},
      {Defect::thaw_without_void, "thaw_without_void", true},
      {Defect::no_move_lease, "no_move_lease", true},
      {Defect::no_check_after_sync, "no_check_after_sync", true},
      {Defect::displaced_copy_deleted, "displaced_copy_deleted", true},
      {Defect::staged_not_synced, "staged_not_synced", true},
      {Defect::believes_less, "believes_less", true, true},
  };
  return all;
}

std::unique_ptr<FileSystem> plant(Defect defect, FileSystem& inner) {
  return std::make_unique<DefectiveFs>(defect, inner);
}

dispatch::PlanDefects plan_defects(Defect defect) {
  dispatch::PlanDefects defects;
  defects.checkpoint_past_unsettled = defect == Defect::checkpoint_too_high;
  return defects;
}

std::unique_ptr<dispatch::CommitTarget> plant(Defect defect, dispatch::CommitTarget& inner) {
  const bool here = defect == Defect::double_append || defect == Defect::batch_cut_short ||
                    defect == Defect::failure_taken_for_success;
  if (!here) return nullptr;
  return std::make_unique<DefectiveTarget>(defect, inner);
}

}  // namespace narad::simtest

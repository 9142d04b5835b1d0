#pragma once
// For tests: who the children of a topic are, as long as no entry of the log can say so. A view of
// the metastore in which one topic is a parent.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "internal/metastore/metastore.h"
#include "internal/wire/move_messages.h"

namespace narad::node::testing {

class StubLinks {
 public:
  explicit StubLinks(std::string parent) : parent_(std::move(parent)) {}

  void attach(wire::ChildLink link) {
    links_.push_back(std::move(link));
    shown_ = nullptr;
  }
  const std::vector<wire::ChildLink>& links() const { return links_; }

  // `inner` with the links in it; the same for the same.
  metastore::ViewPtr in(metastore::ViewPtr inner) const {
    const auto* row = inner->topics.find(parent_);
    if (links_.empty() || row == nullptr) return inner;
    if (shown_ != nullptr && inner_ == inner) return shown_;
    auto state = std::make_shared<metastore::State>(*inner);
    auto parent = std::make_shared<metastore::TopicRow>(*row);
    for (const wire::ChildLink& link : links_) {
      parent->topic.children.push_back(link.child);
      auto child = std::make_shared<metastore::TopicRow>();
      child->topic.name = link.child;
      child->topic.parent = parent_;
      child->topic.attach_epoch = link.epoch;
      state->topics.put(std::move(child));
    }
    state->topics.put(std::move(parent));
    inner_ = std::move(inner);
    shown_ = std::move(state);
    return shown_;
  }

 private:
  const std::string parent_;
  std::vector<wire::ChildLink> links_;
  mutable metastore::ViewPtr inner_, shown_;
};

// A metastore that shows them.
class LinkedMetastore final : public metastore::Proposer {
 public:
  LinkedMetastore(metastore::Proposer& inner, std::shared_ptr<StubLinks> links)
      : inner_(inner), links_(std::move(links)) {}
  Task<Result<metastore::CommandResult>> propose(metastore::Command command) override {
    return inner_.propose(std::move(command));
  }
  metastore::ViewPtr view() const override { return links_->in(inner_.view()); }
  Event& changed() override { return inner_.changed(); }
  Task<Result<RaftIndex>> barrier(Nanos deadline) override { return inner_.barrier(deadline); }
  metastore::LeaderView leader() const override { return inner_.leader(); }
  bool caught_up() const override { return inner_.caught_up(); }

 private:
  metastore::Proposer& inner_;
  const std::shared_ptr<StubLinks> links_;
};

}  // namespace narad::node::testing

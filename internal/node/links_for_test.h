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

struct StubLinks {
  std::string parent;
  std::vector<wire::ChildLink> links;  // attached, in that order
};

// What a node's view is with them in it.
class LinkedView {
 public:
  explicit LinkedView(std::shared_ptr<const StubLinks> stub) : stub_(std::move(stub)) {}

  // The same for the same, as a metastore's own.
  metastore::ViewPtr in(metastore::ViewPtr inner) const {
    const auto* row = inner->topics.find(stub_->parent);
    if (stub_->links.empty() || row == nullptr) return inner;
    if (inner_ == inner && count_ == stub_->links.size()) return shown_;
    auto state = std::make_shared<metastore::State>(*inner);
    auto parent = std::make_shared<metastore::TopicRow>(*row);
    for (const wire::ChildLink& link : stub_->links) {
      parent->topic.children.push_back(link.child);
      auto child = std::make_shared<metastore::TopicRow>();
      child->topic.name = link.child;
      child->topic.parent = stub_->parent;
      child->topic.attach_epoch = link.epoch;
      state->topics.put(std::move(child));
    }
    state->topics.put(std::move(parent));
    count_ = stub_->links.size();
    inner_ = std::move(inner);
    shown_ = std::move(state);
    return shown_;
  }

 private:
  const std::shared_ptr<const StubLinks> stub_;
  mutable std::size_t count_ = 0;
  mutable metastore::ViewPtr inner_, shown_;
};

// A metastore that shows them.
class LinkedMetastore final : public metastore::Proposer {
 public:
  LinkedMetastore(metastore::Proposer& inner, std::shared_ptr<const StubLinks> stub)
      : inner_(inner), linked_(std::move(stub)) {}
  Task<Result<metastore::CommandResult>> propose(metastore::Command command) override {
    return inner_.propose(std::move(command));
  }
  metastore::ViewPtr view() const override { return linked_.in(inner_.view()); }
  Event& changed() override { return inner_.changed(); }
  Task<Result<RaftIndex>> barrier(Nanos deadline) override { return inner_.barrier(deadline); }
  metastore::LeaderView leader() const override { return inner_.leader(); }
  bool caught_up() const override { return inner_.caught_up(); }

 private:
  metastore::Proposer& inner_;
  const LinkedView linked_;
};

}  // namespace narad::node::testing

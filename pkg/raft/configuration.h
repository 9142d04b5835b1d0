#pragma once
// Who belongs to the cluster, as a value: the members, the one-step changes between configurations,
// their stored form, and which learner should become a voter next.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/bytes.h"
#include "pkg/base/ids.h"
#include "pkg/base/result.h"

namespace narad::raft {

using ReplicaId = StrongNumber<struct RaftReplicaTag>;  // 0: none

enum class MemberRole : std::uint8_t { learner = 0, voter = 1 };

struct Member {
  ReplicaId replica;
  std::string node;  // node id, for people and addresses; at most one replica of a node is a member
  MemberRole role = MemberRole::learner;
  friend bool operator==(const Member&, const Member&) = default;
};

inline constexpr std::size_t kMembersMax = 1024;
inline constexpr std::size_t kNodeNameBytesMax = 255;

// Sorted by replica id. Equal member lists are equal configurations.
class Configuration {
 public:
  Configuration() = default;
  // Errors: invalid_argument on a zero or double id, a double node, an over-long name, too many.
  static Result<Configuration> make(std::vector<Member> members);

  const std::vector<Member>& members() const { return members_; }
  bool empty() const { return members_.empty(); }
  const Member* find(ReplicaId replica) const;
  const Member* find_node(std::string_view node) const;
  bool is_voter(ReplicaId replica) const;
  std::vector<ReplicaId> voters() const;
  std::size_t voter_count() const;

  // version u8 = 1, count u32, then per member replica u64, role u8, name length u8, name.
  Bytes encode() const;
  // Errors: data_loss with what is wrong.
  static Result<Configuration> decode(ByteView bytes);

  friend bool operator==(const Configuration&, const Configuration&) = default;

 private:
  std::vector<Member> members_;
};

// "n1(1) n2(2)L": name, replica id, L for a learner.
std::string describe(const Configuration& c);

// One step; it changes the set of voters by at most one replica.
struct ConfigurationChange {
  enum class Kind : std::uint8_t {
    add_learner,  // a node already there under another replica id is replaced by this one
    promote,      // learner to voter
    demote,       // voter to learner
    remove,
  };
  Kind kind = Kind::add_learner;
  ReplicaId replica;
  std::string node;  // of add_learner
};

// Errors: exists / not_found / conflict where the step makes no sense, conflict if it would leave
// no voter, invalid_argument on a bad id or name.
Result<Configuration> apply(const Configuration& from, const ConfigurationChange& change);

// Policy: an even number of voters survives no more failures than the odd number below it, so a
// learner is promoted when that makes the number odd, or when a second one is ready to follow at
// once. `ready` are learners that have caught up; above `voters_max` nobody is promoted. 0: nobody.
ReplicaId next_promotion(const Configuration& c, const std::vector<ReplicaId>& ready,
                         std::size_t voters_max);

}  // namespace narad::raft

#pragma once
// The one error type of the product. A code is for decisions (what the caller should do next), the
// text is for people. Cheap to copy (one shared pointer); immutable; safe to share across threads.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace narad {

// Codes are chosen by what the caller should do. The HTTP status of each is fixed in one table,
// internal/api/status.cpp.
enum class Errc : std::uint8_t {
  invalid_argument = 1,  // the request is wrong: fix the input                         400
  unauthenticated,       // say who you are                                             401
  forbidden,             // you may not                                                 403
  not_found,             // the thing does not exist                                    404
  exists,                // a thing of that name exists already                         409
  conflict,              // it exists in a state that does not allow this               409
  gone,                  // it existed, and will not come back                          410
  too_large,             // over a documented limit                                     413
  not_owner,             // ask the node that owns it                                   421
  not_leader,            // ask the Raft leader                                         421
  busy,                  // over a rate: retry later                                    429
  unavailable,           // retry here later (frozen, no leader, disk full or failing)  503
  unknown_outcome,       // may or may not have happened: resolve by reading            503
  data_loss,             // stored bytes are damaged or missing                         500
  internal,              // a bug, or an outside failure without a better name          500
  cancelled,             // the caller gave up; never sent over a wire
  owner_down,            // the node that has it is known to be dead: retry later        503
  unreachable,           // the node that has it did not answer                          502
};
inline constexpr Errc kErrcLast = Errc::unreachable;  // values are on the wire: only ever append

// The name used in logs and in JSON (`not_found`).
std::string_view to_string(Errc code);

class [[nodiscard]] Error {
 public:
  Error(Errc code, std::string text, int os_errno = 0);

  // An operating-system failure: `what` says what was attempted on which object ("open /x/y").
  // The code follows from errno: ENOENT not_found; EEXIST exists; ENOSPC, EDQUOT, EROFS, EIO,
  // EMFILE, ENFILE, EAGAIN, ETIMEDOUT, ECONN*, EPIPE, EHOSTUNREACH, ENETUNREACH unavailable;
  // EACCES, EPERM forbidden; ECANCELED cancelled; EINVAL invalid_argument; otherwise internal.
  static Error system(int os_errno, std::string_view what);

  Errc code() const { return code_; }
  const std::string& text() const { return detail_->text; }
  // The errno behind it, or 0.
  int os_errno() const { return detail_->os_errno; }

  // The same error with "context: " put in front of its text. Code and errno stay.
  Error with_context(std::string_view context) const;

 private:
  struct Detail {
    std::string text;
    int os_errno;
  };
  Errc code_;
  std::shared_ptr<const Detail> detail_;
};

}  // namespace narad

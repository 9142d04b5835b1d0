#include "pkg/base/error.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "pkg/base/assert.h"

namespace narad {

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
      return "invalid_argument";
    case Errc::unauthenticated:
      return "unauthenticated";
    case Errc::forbidden:
      return "forbidden";
    case Errc::not_found:
      return "not_found";
    case Errc::exists:
      return "exists";
    case Errc::conflict:
      return "conflict";
    case Errc::gone:
      return "gone";
    case Errc::too_large:
      return "too_large";
    case Errc::not_owner:
      return "not_owner";
    case Errc::not_leader:
      return "not_leader";
    case Errc::busy:
      return "busy";
    case Errc::unavailable:
      return "unavailable";
    case Errc::unknown_outcome:
      return "unknown_outcome";
    case Errc::data_loss:
      return "data_loss";
    case Errc::internal:
      return "internal";
    case Errc::cancelled:
      return "cancelled";
    case Errc::owner_down:
      return "owner_down";
    case Errc::unreachable:
      return "unreachable";
  }
  NARAD_ASSERT(false, "unknown error code");
}

namespace {
Errc code_of(int os_errno) {
  switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
      return Errc::not_found;
    case EEXIST:
    case ENOTEMPTY:
      return Errc::exists;
    case EACCES:
    case EPERM:
      return Errc::forbidden;
    case EINVAL:
    case ENAMETOOLONG:
      return Errc::invalid_argument;
    case ECANCELED:
      return Errc::cancelled;
    case ENOSPC:
    case EDQUOT:
    case EROFS:
    case EIO:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EBUSY:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Errc::unavailable;
    default:
      return Errc::internal;
  }
}
}  // namespace

Error::Error(Errc code, std::string text, int os_errno)
    : code_(code), detail_(std::make_shared<const Detail>(Detail{std::move(text), os_errno})) {}

Error Error::system(int os_errno, std::string_view what) {
  return Error(code_of(os_errno),
               std::string(what) + ": " + std::generic_category().message(os_errno), os_errno);
}

Error Error::with_context(std::string_view context) const {
  return Error(code_, std::string(context) + ": " + detail_->text, detail_->os_errno);
}

}  // namespace narad

#include "internal/api/status.h"

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/json/writer.h"

namespace narad::api {

int status_of(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
      return 400;
    case Errc::unauthenticated:
      return 401;
    case Errc::forbidden:
      return 403;
    case Errc::not_found:
      return 404;
    case Errc::exists:
    case Errc::conflict:
      return 409;
    case Errc::gone:
      return 410;
    case Errc::too_large:
      return 413;
    case Errc::not_owner:
    case Errc::not_leader:
      return 421;
    case Errc::busy:
      return 429;
    case Errc::unavailable:
    case Errc::owner_down:
    case Errc::unknown_outcome:
    case Errc::cancelled:  // work that was given up because the node stops: come again
      return 503;
    case Errc::unreachable:
      return 502;
    case Errc::data_loss:
    case Errc::internal:
      return 500;
  }
  NARAD_ASSERT(false, "unknown error code");
}

http::Response fail(LogSink& log, std::string_view op, const Error& error) {
  const int status = status_of(error.code());
  if (error.code() == Errc::owner_down || error.code() == Errc::unreachable) {
    return http::text_response(status, error.text());  // as routing answers (http-api 1.0.3)
  }
  if (status != 500) return http::error_response(status, error.text());
  NARAD_LOG_ERROR(log, "request failed", {"op", op}, {"code", to_string(error.code())},
                  {"error", error});
  return http::error_response(status, cat(op, " failed"));
}

http::Response refuse(const Refusal& refusal) {
  json::Writer w;
  w.begin_object().member("error", refusal.text).member("code", refusal.code);
  w.key("reasons").begin_array();
  for (const Reason& reason : refusal.reasons) {
    w.begin_object().member("rule", reason.rule).member("detail", reason.detail).end_object();
  }
  w.end_array();
  for (const auto& [name, value] : refusal.more) w.member(name, value);
  w.end_object();
  return http::json_response(409, w.take() + "\n");
}

}  // namespace narad::api

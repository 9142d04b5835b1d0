#pragma once
// The one table from errors to HTTP statuses (decisions.md, "Errors"), and error answers.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/error.h"
#include "pkg/env/log.h"
#include "pkg/http/message.h"

namespace narad::api {

int status_of(Errc code);

// The answer to a request that failed with `error` while doing `op` ("create topic"). A 500 says
// "<op> failed" and its cause goes to the log; every other status carries the error's own text.
http::Response fail(LogSink& log, std::string_view op, const Error& error);

// A verb of the cluster that is refused, with every rule that stands in its way (http-api 7).
struct Reason {
  std::string rule;    // one word, for programs
  std::string detail;  // for people
};
struct Refusal {
  std::string text;
  std::string code;  // the rule that decided
  std::vector<Reason> reasons;
  std::vector<std::pair<std::string, std::string>> more{};  // further members
};
// 409 {"error":…,"code":…,"reasons":[{"rule":…,"detail":…}],…}.
http::Response refuse(const Refusal& refusal);

}  // namespace narad::api

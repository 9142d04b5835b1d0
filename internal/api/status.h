#pragma once
// The one table from errors to HTTP statuses (decisions.md, "Errors"), and error answers.
#include <string_view>

#include "pkg/base/error.h"
#include "pkg/env/log.h"
#include "pkg/http/message.h"

namespace narad::api {

int status_of(Errc code);

// The answer to a request that failed with `error` while doing `op` ("create topic"). A 500 says
// "<op> failed" and its cause goes to the log; every other status carries the error's own text.
http::Response fail(LogSink& log, std::string_view op, const Error& error);

}  // namespace narad::api

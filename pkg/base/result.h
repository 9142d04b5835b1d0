#pragma once
// Result<T>: a value or an Error, [[nodiscard]]. `Result<>` carries no value; return `ok()`.
// Looking at the wrong side of a result ends the process (policy::terminate).
//
//   Result<int> twice(std::string_view s) {
//     NARAD_TRY(auto n, parse(s));      // passes the error up
//     return 2 * n;
//   }
//
// Each expands to several statements: always inside braces. NARAD_CO_TRY is the same inside a
// coroutine. Cost: about 0.3 s of compile time a file.
#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/terminate.hpp>
#include <boost/outcome/try.hpp>

#include "pkg/base/error.h"

namespace narad {

template <class T = void>
using Result = boost::outcome_v2::basic_result<T, Error, boost::outcome_v2::policy::terminate>;

inline auto ok() { return boost::outcome_v2::success(); }

}  // namespace narad

#define NARAD_TRY(...) BOOST_OUTCOME_TRY(__VA_ARGS__)
#define NARAD_CO_TRY(...) BOOST_OUTCOME_CO_TRY(__VA_ARGS__)

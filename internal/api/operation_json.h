#pragma once
// Departures, plans and their reasons as bodies (http-api 7). Each ends with a newline, but for
// write_drain(). Pure.
#include <string>

#include "internal/api/broker.h"
#include "internal/api/status.h"
#include "internal/model/operations.h"

namespace narad::json {
class Writer;
}

namespace narad::api {

// The two members that the answer about members has of one that drains: `drain` and
// `decommission_blocked`.
void write_drain(json::Writer& w, const DrainVerdict& verdict);

// A verdict by itself, `possible` if a drain would be accepted.
std::string verdict_body(const DrainVerdict& verdict);
// Why a drain is not begun: everything that would never pass. REQUIRES: verdict.hopeless().
Refusal hopeless_drain(const DrainVerdict& verdict);

std::string stop_body(const StopVerdict& verdict);
std::string quarantine_body(const QuarantineByNode& quarantined);
std::string rebalance_body(const RebalanceOutcome& outcome, bool dry_run);
std::string explanation_body(const Explanation& explanation);

}  // namespace narad::api

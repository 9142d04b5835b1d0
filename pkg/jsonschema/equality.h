#pragma once
// When two JSON values are the same (JSON Schema core, 4.2.2): numbers by value as 64-bit floats,
// objects without regard to order. Pure; no recursion.
#include <optional>
#include <string>

#include "pkg/json/document.h"

namespace narad::jsonschema {

// Appends a form that is equal for equal values only, to compare, sort and look up by. Stops early
// once more than `bytes_max` were appended (then the form equals that of no value that fits).
// REQUIRES: every number fits a double.
void append_canonical(std::string& out, json::Value value, std::size_t bytes_max);

// The position of an element of an array that equals an earlier one; the smallest such is not
// promised. Loglinear.
std::optional<std::size_t> find_duplicate(json::Value array);

// Whether `value` is an integral multiple of `unit`, both taken as the decimal numbers that their
// shortest spellings denote: 0.0075 is a multiple of 0.0001. REQUIRES: finite, unit > 0.
bool is_multiple(double value, double unit);

}  // namespace narad::jsonschema

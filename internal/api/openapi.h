#pragma once
// The parts of the OpenAPI document, by subject. Private to this directory.
#include <string_view>

namespace narad::api {

// openapi_cluster.cpp: members of "paths", each with the comma behind it; members of "components" /
// "schemas", without a comma behind the last.
std::string_view openapi_cluster_paths();
std::string_view openapi_cluster_schemas();

}  // namespace narad::api

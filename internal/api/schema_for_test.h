#pragma once
// Whether answers are what the OpenAPI document says.
#include <gtest/gtest.h>

#include "internal/api/routes.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/json/document.h"
#include "pkg/jsonschema/schema.h"

namespace narad::api {

inline void expect_fits(std::string_view name, const std::string& body) {
  auto document = json::Document::parse(std::string(openapi_document()), 64);
  NARAD_ASSERT(document.has_value());
  const std::string components(document.value().root().find("components")->find("schemas")->raw());
  auto schema =
      jsonschema::Schema::compile(cat("{\"$ref\":\"#/components/schemas/", name,
                                      "\",\"components\":{\"schemas\":", components, "}}"));
  NARAD_ASSERT(schema.has_value(), schema.error().text());
  auto valid = schema.value().validate(body);
  EXPECT_TRUE(valid) << name << ": " << valid.error().text() << "\n" << body;
}

}  // namespace narad::api

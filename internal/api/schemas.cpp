#include "internal/api/schemas.h"

#include "pkg/base/text.h"
#include "pkg/jsonschema/schema.h"

namespace narad::api {

Result<SchemaPtr> compile_schema(std::string_view text) {
  auto compiled = jsonschema::Schema::compile(std::string(text));
  if (!compiled) return compiled.error();
  return std::make_shared<const jsonschema::Schema>(std::move(compiled.value()));
}

Result<void> check_message(const jsonschema::Schema& schema, const std::string& message) {
  auto valid = schema.validate(message);
  if (valid || valid.error().text().starts_with("schema violation")) return valid;
  return valid.error().with_context("schema violation");
}

Result<SchemaPtr> SchemaCache::get(const metastore::TopicRow& row) {
  const metastore::SchemaVersion* latest = row.schema();
  if (latest == nullptr) return SchemaPtr();
  const auto at = compiled_.find(row.topic.name);
  if (at != compiled_.end() && at->second.incarnation == row.topic.incarnation &&
      at->second.version == latest->version) {
    return at->second.schema;
  }
  auto schema = compile_schema(latest->text);
  if (!schema) {
    return Error(Errc::internal, cat("version ", latest->version, " of the schema of topic ",
                                     row.topic.name, " does not compile: ", schema.error().text()));
  }
  if (at == compiled_.end() && compiled_.size() >= kTopicsMax) compiled_.clear();
  compiled_.insert_or_assign(row.topic.name,
                             Entry{row.topic.incarnation, latest->version, schema.value()});
  return schema.value();
}

}  // namespace narad::api

#pragma once
// Compiled JSON Schemas, one per schema version in use, and the rules of http-api 2.6. Lives on the
// node's loop; what it hands out is immutable and may be used in jobs.
#include <memory>
#include <string>
#include <unordered_map>

#include "internal/metastore/state.h"
#include "pkg/base/result.h"

namespace narad::jsonschema {
class Schema;
}

namespace narad::api {

using SchemaPtr = std::shared_ptr<const jsonschema::Schema>;

// invalid_argument "invalid schema: …" unless `text` is an object or a boolean that compiles.
Result<SchemaPtr> compile_schema(std::string_view text);

// ok, or invalid_argument, with the place where it fails (or that it is not JSON). Pure; takes up
// to 50 ms for the largest message.
Result<void> check_message(const jsonschema::Schema& schema, const std::string& message);

class SchemaCache {
 public:
  // The compiled form of a topic's newest schema; null if it has none. `internal` if a stored
  // schema does not compile: nothing can be said about a message then, so none is taken.
  Result<SchemaPtr> get(const metastore::TopicRow& row);
  std::size_t size() const { return compiled_.size(); }

 private:
  struct Entry {
    Incarnation incarnation{0};
    std::uint32_t version = 0;
    SchemaPtr schema;
  };
  // By topic name; a newer version or another life replaces the entry. Bounded by kTopicsMax: when
  // full it starts afresh.
  static constexpr std::size_t kTopicsMax = 4096;
  std::unordered_map<std::string, Entry> compiled_;
};

}  // namespace narad::api

// The OpenAPI 3.1 document of every route (http-api 7). openapi_test.cpp holds it against the table
// of routes and against the answers of the handlers.
#include "internal/api/openapi.h"
#include "internal/api/routes.h"
#include "pkg/base/text.h"

namespace narad::api {
namespace {

constexpr std::string_view kBeginning = R"json({
"openapi": "3.1.0",
"info": {
  "title": "Narad",
  "version": "1",
  "description": "A durable work queue over HTTP. A message is produced to a topic, leased to one consumer for the topic's visibility timeout, and delivered again unless it is acknowledged. Request bodies that are JSON are read strictly: exactly one value, no unknown fields; field names match without regard to case. Every error answer is {\"error\": text}; act on the status, show the text. Every path but /healthz, /readyz and /metrics asks for HTTP Basic credentials, unless security is off; a grant is an action (produce, consume, create, admin) and patterns of topic names (a name, or its beginning and a *)."
},
"servers": [{"url": "/"}],
"security": [{"basic": []}],
"tags": [
  {"name": "topics", "description": "Create, look at, change and delete topics."},
  {"name": "messages", "description": "Produce, consume and settle messages."},
  {"name": "users", "description": "Who may do what."},
  {"name": "cluster", "description": "Members and moves."},
  {"name": "node", "description": "Health, metrics and this document."}
],
"paths": {
  "/v1/topics": {
    "post": {
      "tags": ["topics"], "operationId": "createTopic", "summary": "Create a topic",
      "description": "Not idempotent: repeated after a lost answer it says 409.",
      "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/NewTopic"}}}},
      "responses": {
        "201": {"description": "The topic was created; it is durable.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Topic"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "409": {"$ref": "#/components/responses/Conflict"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    },
    "get": {
      "tags": ["topics"], "operationId": "listTopics", "summary": "List topics, ascending by name",
      "parameters": [
        {"name": "limit", "in": "query", "description": "Topics a page; more than 1000 counts as 1000.", "schema": {"type": "integer", "minimum": 1, "default": 100}},
        {"name": "page_token", "in": "query", "description": "next_page_token of the page before: names strictly greater follow.", "schema": {"type": "string", "default": ""}}
      ],
      "responses": {
        "200": {"description": "One page.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/TopicPage"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"}
      }
    }
  },
  "/v1/topics/{topic}": {
    "parameters": [{"$ref": "#/components/parameters/topic"}],
    "get": {
      "tags": ["topics"], "operationId": "getTopic", "summary": "A topic with the statistics of its partitions",
      "parameters": [{"name": "partition", "in": "query", "description": "Only this partition's statistics.", "schema": {"type": "integer", "minimum": 0}}],
      "responses": {
        "200": {"description": "The topic.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/TopicWithStats"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "421": {"$ref": "#/components/responses/Misdirected"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    },
    "patch": {
      "tags": ["topics"], "operationId": "changeTopic", "summary": "Change a topic's settings, partitions or schema",
      "description": "Applied in this order: retention, visibility and caps; partitions; schema. What was applied stays applied if a later step is refused.",
      "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/TopicChange"}}}},
      "responses": {
        "200": {"description": "The topic after the change.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Topic"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "409": {"$ref": "#/components/responses/Conflict"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    },
    "delete": {
      "tags": ["topics"], "operationId": "deleteTopic", "summary": "Delete a topic with its messages and schemas",
      "responses": {
        "204": {"description": "Deleted. The name may be used again and begins at offset 0."},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "409": {"$ref": "#/components/responses/Conflict"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/topics/{topic}/produce": {
    "parameters": [{"$ref": "#/components/parameters/topic"}],
    "post": {
      "tags": ["messages"], "operationId": "produce", "summary": "Produce one message",
      "description": "The body is the message, byte for byte, 1 to 1048576 bytes; its Content-Type is not looked at. Not idempotent: repeated after a lost answer the message may be there twice.",
      "parameters": [
        {"name": "key", "in": "query", "description": "UTF-8; decides the partition (FNV-1a 32, modulo the number of partitions). Without one the server makes one.", "schema": {"type": "string"}},
        {"name": "partition", "in": "query", "description": "Overrides the key.", "schema": {"type": "integer", "minimum": 0}}
      ],
      "requestBody": {"required": true, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}},
      "responses": {
        "202": {"description": "Durable on this node; visible to consumers shortly after.", "headers": {"X-Narad-Partition": {"description": "The partition it is headed for.", "schema": {"type": "integer"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "409": {"$ref": "#/components/responses/Conflict"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/topics/{topic}/produce:batch": {
    "parameters": [{"$ref": "#/components/parameters/topic"}],
    "post": {
      "tags": ["messages"], "operationId": "produceBatch", "summary": "Produce up to 10000 messages, all or none",
      "description": "application/vnd.narad.batch: the bytes NRB1, a count, then per record the length of its key, the length of its value, key and value; counts and lengths are unsigned 32-bit little-endian. application/x-ndjson: one object a line. The first bad record is named by its number, from 1, and nothing is accepted then.",
      "parameters": [
        {"name": "partition", "in": "query", "description": "Overrides every key.", "schema": {"type": "integer", "minimum": 0}}
      ],
      "requestBody": {"required": true, "content": {
        "application/vnd.narad.batch": {"schema": {"type": "string", "format": "binary"}},
        "application/x-ndjson": {"schema": {"$ref": "#/components/schemas/BatchLine"}}
      }},
      "responses": {
        "202": {"description": "All of them are durable on this node.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/BatchAccepted"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "409": {"$ref": "#/components/responses/Conflict"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "415": {"$ref": "#/components/responses/UnsupportedType"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/topics/{topic}/consume": {
    "parameters": [{"$ref": "#/components/parameters/topic"}],
    "get": {
      "tags": ["messages"], "operationId": "consume", "summary": "Lease the next messages, or read one again by its offset",
      "description": "Without offset: a queue read, which leases what it answers for the topic's visibility timeout. With partition and offset: a replay, which changes nothing and may be repeated. With max the answer is a list; with Accept: application/x-ndjson it is one message a line.",
      "parameters": [
        {"name": "partition", "in": "query", "description": "Only from this partition.", "schema": {"type": "integer", "minimum": 0}},
        {"name": "offset", "in": "query", "description": "Replay exactly this offset; needs partition, does not go with max.", "schema": {"type": "integer", "minimum": 0}},
        {"name": "wait", "in": "query", "description": "How long to wait for a message: a duration such as 500ms or 10s; more than the server's limit counts as the limit.", "schema": {"type": "string", "default": "0"}},
        {"name": "max", "in": "query", "description": "Up to so many messages, as a list.", "schema": {"type": "integer", "minimum": 1, "maximum": 1000}},
        {"name": "encoding", "in": "query", "description": "base64: every payload as base64, so that it is read byte for byte.", "schema": {"type": "string", "enum": ["base64"]}},
        {"name": "local_only", "in": "query", "description": "1: only partitions of the node asked, without waiting.", "schema": {"type": "string", "enum": ["1"]}}
      ],
      "responses": {
        "200": {"description": "Messages.", "content": {
          "application/json": {"schema": {"oneOf": [{"$ref": "#/components/schemas/Message"}, {"type": "array", "items": {"$ref": "#/components/schemas/Message"}}]}},
          "application/x-ndjson": {"schema": {"$ref": "#/components/schemas/Message"}}
        }},
        "204": {"description": "No message within the wait."},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "410": {"description": "Replay only: the offset is no longer kept, or cannot be read.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
        "421": {"$ref": "#/components/responses/Misdirected"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "502": {"$ref": "#/components/responses/Unreachable"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/topics/{topic}/ack": {
    "parameters": [{"$ref": "#/components/parameters/topic"}],
    "post": {
      "tags": ["messages"], "operationId": "ack", "summary": "Acknowledge a message, extend its lease, or give it back",
      "description": "The body is not looked at.",
      "parameters": [
        {"name": "receipt_handle", "in": "query", "required": true, "description": "From the message.", "schema": {"type": "string"}},
        {"name": "extend", "in": "query", "description": "Absent or false: acknowledge. true or 1: begin the lease's time anew; the handle stays valid. 0: give the message back at once.", "schema": {"type": "string", "enum": ["true", "1", "0", "false", ""]}}
      ],
      "responses": {
        "204": {"description": "Done."},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "410": {"description": "The handle is of no live lease: expired, given to another, or settled already.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "421": {"$ref": "#/components/responses/Misdirected"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "502": {"$ref": "#/components/responses/Unreachable"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/topics/{topic}/ack:batch": {
    "parameters": [{"$ref": "#/components/parameters/topic"}],
    "post": {
      "tags": ["messages"], "operationId": "ackBatch", "summary": "Settle up to 1000 handles",
      "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/AckBatch"}}}},
      "responses": {
        "200": {"description": "One result per handle, in their order.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/AckResults"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "415": {"$ref": "#/components/responses/UnsupportedType"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/users": {
    "post": {
      "tags": ["users"], "operationId": "createUser", "summary": "Create a user",
      "description": "For admins; grants of admin are handed out by root only. A password over 72 bytes is answered 500.",
      "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/NewUser"}}}},
      "responses": {
        "201": {"description": "The user was created, and may log in at once.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/User"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "409": {"$ref": "#/components/responses/Conflict"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    },
    "get": {
      "tags": ["users"], "operationId": "listUsers", "summary": "All users, ascending by name",
      "description": "For admins.",
      "responses": {
        "200": {"description": "The users.", "content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/User"}}}}},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "429": {"$ref": "#/components/responses/TooManyRequests"}
      }
    }
  },
  "/v1/users/{username}": {
    "parameters": [{"$ref": "#/components/parameters/username"}],
    "get": {
      "tags": ["users"], "operationId": "getUser", "summary": "One user",
      "description": "For admins.",
      "responses": {
        "200": {"description": "The user.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/User"}}}},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "429": {"$ref": "#/components/responses/TooManyRequests"}
      }
    },
    "delete": {
      "tags": ["users"], "operationId": "deleteUser", "summary": "Delete a user",
      "description": "For admins; not root, and not the own account. Topics the user owns stay, with that name as their owner.",
      "responses": {
        "204": {"description": "Deleted; the next request with these credentials is refused."},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "409": {"$ref": "#/components/responses/Conflict"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/users/{username}/grants": {
    "parameters": [{"$ref": "#/components/parameters/username"}],
    "put": {
      "tags": ["users"], "operationId": "setGrants", "summary": "Replace all grants of a user",
      "description": "For admins; not root's, and not the own ones. Counts from the user's next request.",
      "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Grants"}}}},
      "responses": {
        "200": {"description": "The user after the change.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/User"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "409": {"$ref": "#/components/responses/Conflict"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/users/{username}/password": {
    "parameters": [{"$ref": "#/components/parameters/username"}],
    "put": {
      "tags": ["users"], "operationId": "setPassword", "summary": "Change a password",
      "description": "For the user, who gives the current one, and for admins. Root's is changed by root only. The old password is refused from the next request on.",
      "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PasswordChange"}}}},
      "responses": {
        "204": {"description": "Changed."},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "409": {"$ref": "#/components/responses/Conflict"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
)json";

// From the routes of the node itself to the schemas of topics, messages and users.
constexpr std::string_view kNode = R"json(  "/healthz": {
    "get": {
      "tags": ["node"], "operationId": "healthz", "summary": "Is the process alive",
      "security": [],
      "responses": {
        "200": {"description": "Yes.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Status"}}}},
        "503": {"description": "It is shutting down.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Status"}}}}
      }
    }
  },
  "/readyz": {
    "get": {
      "tags": ["node"], "operationId": "readyz", "summary": "Should traffic be sent here",
      "security": [],
      "responses": {
        "200": {"description": "Yes.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Status"}}}},
        "503": {"description": "Not yet, or not any more.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/NotReady"}}}}
      }
    }
  },
  "/metrics": {
    "get": {
      "tags": ["node"], "operationId": "metrics", "summary": "Metrics in the Prometheus text format",
      "security": [],
      "responses": {"200": {"description": "Version 0.0.4 of the format.", "content": {"text/plain": {"schema": {"type": "string"}}}}
      }
    }
  },
  "/v1/openapi.json": {
    "get": {
      "tags": ["node"], "operationId": "openapi", "summary": "This document",
      "responses": {
        "200": {"description": "OpenAPI 3.1.", "content": {"application/json": {"schema": {"type": "object"}}}},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "429": {"$ref": "#/components/responses/TooManyRequests"}
      }
    }
  }
},
"components": {
  "securitySchemes": {
    "basic": {"type": "http", "scheme": "basic"}
  },
  "parameters": {
    "topic": {"name": "topic", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,255}$"}},
    "username": {"name": "username", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}}
  },
  "responses": {
    "BadRequest": {"description": "The request is wrong; the text says where.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "Unauthenticated": {"description": "No credentials, or wrong ones.", "headers": {"WWW-Authenticate": {"description": "Basic realm=\"narad\"", "schema": {"type": "string"}}}, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "Forbidden": {"description": "This user may not do that; the text names the grant that is missing.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "TooManyRequests": {"description": "Too many wrong passwords for this user, or over the user's rate limit; then Retry-After is there.", "headers": {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "NotFound": {"description": "There is no such topic, user, member or move.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "Conflict": {"description": "It exists, or exists in a state that does not allow this.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "Refused": {"description": "Refused in the present state of the cluster; every rule that stands in the way is named. Of a move: with the present owner and target.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}},
    "TooLarge": {"description": "The body, or a message in it, is over the limit.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "UnsupportedType": {"description": "This route takes other content types.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "Misdirected": {"description": "The node that owns the partition cannot be reached from here.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "Failed": {"description": "Something is broken; the node's log says what.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "Unreachable": {"description": "The node that owns the partition did not answer: try again. Whether it acted is unknown.", "content": {"text/plain": {"schema": {"type": "string"}}}},
    "Unavailable": {"description": "Not now: try again. Whether a write happened is to be found out by reading. Plain text if the node that owns the partition is down.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}, "text/plain": {"schema": {"type": "string"}}}}
  },
  "schemas": {
    "Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}, "additionalProperties": false},
    "Refusal": {
      "type": "object", "required": ["error", "code", "reasons"],
      "properties": {
        "error": {"type": "string"},
        "code": {"type": "string", "description": "The rule that decided, for programs."},
        "reasons": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["rule", "detail"], "properties": {"rule": {"type": "string"}, "detail": {"type": "string"}}}},
        "owner": {"type": "string", "description": "Of a move: who owns the partition now."},
        "target": {"type": "string", "description": "Of a move: where the partition goes now; empty if it stays."}
      }
    },
    "Status": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
    "NotReady": {"type": "object", "required": ["error", "waiting_for"], "properties": {"error": {"type": "string"}, "waiting_for": {"type": "array", "items": {"type": "string"}}}},
    "Grant": {
      "type": "object", "required": ["action"], "additionalProperties": false,
      "properties": {
        "action": {"type": "string", "enum": ["produce", "consume", "create", "admin"]},
        "patterns": {"type": "array", "items": {"type": "string", "pattern": "^[A-Za-z0-9._-]{0,255}\\*?$", "minLength": 1}, "description": "A topic name, or the beginning of one and a *. At least one; none for admin."}
      }
    },
    "Grants": {
      "type": "object", "additionalProperties": false,
      "properties": {"grants": {"type": ["array", "null"], "items": {"$ref": "#/components/schemas/Grant"}, "description": "None: the user may do nothing but look."}}
    },
    "NewUser": {
      "type": "object", "required": ["username", "password"], "additionalProperties": false,
      "properties": {
        "username": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
        "password": {"type": "string", "minLength": 1, "description": "At most 72 bytes, no control characters."},
        "grants": {"type": ["array", "null"], "items": {"$ref": "#/components/schemas/Grant"}}
      }
    },
    "PasswordChange": {
      "type": "object", "required": ["new_password"], "additionalProperties": false,
      "properties": {
        "new_password": {"type": "string", "minLength": 1, "description": "At most 72 bytes, no control characters."},
        "current_password": {"type": ["string", "null"], "description": "Asked of users who are not admins."}
      }
    },
    "User": {
      "type": "object", "required": ["username"], "additionalProperties": false,
      "properties": {
        "username": {"type": "string"},
        "grants": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Grant"}},
        "root": {"type": "boolean", "const": true, "description": "There for the first user only, who may do everything."},
        "created_at_ms": {"type": "integer", "description": "Unix time in milliseconds."},
        "updated_at_ms": {"type": "integer", "description": "Unix time in milliseconds."}
      }
    },
    "NewTopic": {
      "type": "object", "required": ["name"], "additionalProperties": false,
      "properties": {
        "name": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,255}$", "description": "Not . or .. either."},
        "partitions": {"type": "integer", "minimum": 0, "default": 0, "description": "0: the server's default. At most topic.max_partitions of the configuration."},
        "retention_ms": {"type": "integer", "default": 0, "description": "At least 3600000; 0: the server's default; -1: keep for ever."},
        "visibility_timeout_ms": {"type": "integer", "minimum": 0, "default": 0, "description": "0: the server's default."},
        "max_in_flight_per_partition": {"type": "integer", "minimum": 0, "default": 0, "description": "0: the server's default."},
        "max_acked_ahead_per_partition": {"type": "integer", "minimum": 0, "default": 0, "description": "0: the server's default."},
        "schema": {"type": ["object", "boolean"], "description": "A JSON Schema that every message must satisfy."},
        "parent": {"type": "string", "default": ""},
        "fanout_delay_ms": {"type": "integer", "minimum": 0, "description": "Needs a parent."},
        "owner": {"type": "string", "description": "Accepted and not looked at."}
      }
    },
    "TopicChange": {
      "type": "object", "additionalProperties": false, "minProperties": 1,
      "properties": {
        "partitions": {"type": "integer", "minimum": 0, "description": "More than there are; 0: no change."},
        "retention_ms": {"type": ["integer", "null"], "description": "At least 3600000; 0: the server's default; -1: keep for ever."},
        "visibility_timeout_ms": {"type": ["integer", "null"], "minimum": 0, "description": "0: the server's default."},
        "max_in_flight_per_partition": {"type": ["integer", "null"], "minimum": 0, "description": "0: the server's default."},
        "max_acked_ahead_per_partition": {"type": ["integer", "null"], "minimum": 0, "description": "0: the server's default."},
        "schema": {"type": ["object", "boolean"], "description": "The next version: every property of the one before is still there with at least its types, and none is newly required."}
      }
    },
    "Topic": {
      "type": "object",
      "required": ["name", "partitions", "retention_ms", "visibility_timeout_ms", "max_in_flight_per_partition", "max_acked_ahead_per_partition", "created_at", "role"],
      "properties": {
        "name": {"type": "string"},
        "partitions": {"type": "integer", "minimum": 1},
        "retention_ms": {"type": "integer", "minimum": 0, "description": "0: for ever."},
        "visibility_timeout_ms": {"type": "integer", "minimum": 0},
        "max_in_flight_per_partition": {"type": "integer", "minimum": 1},
        "max_acked_ahead_per_partition": {"type": "integer", "minimum": 1},
        "created_at": {"type": "integer", "description": "Unix time in seconds."},
        "owner": {"type": "string", "description": "Who created it."},
        "role": {"type": "string", "enum": ["standalone", "parent", "child"]},
        "children": {"type": "array", "items": {"type": "string"}},
        "parent": {"type": "string"},
        "attach_epoch": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
        "fanout_delay_ms": {"type": "integer", "minimum": 1}
      }
    },
    "TopicWithStats": {
      "allOf": [
        {"$ref": "#/components/schemas/Topic"},
        {"type": "object", "required": ["partition_stats"], "properties": {"partition_stats": {"type": "array", "items": {"$ref": "#/components/schemas/PartitionStats"}}}}
      ]
    },
    "PartitionStats": {
      "type": "object",
      "required": ["index", "segments", "oldest_offset", "next_offset", "high_watermark", "size_bytes"],
      "properties": {
        "index": {"type": "integer", "minimum": 0},
        "segments": {"type": "integer", "minimum": 0},
        "oldest_offset": {"type": "integer", "minimum": 0, "description": "The lowest that is kept."},
        "next_offset": {"type": "integer", "minimum": 0},
        "high_watermark": {"type": "integer", "minimum": 0, "description": "Everything below it may be consumed."},
        "size_bytes": {"type": "integer", "minimum": 0},
        "oldest_segment_at": {"type": "integer", "description": "Unix time in seconds."},
        "owner_node": {"type": "string"}
      }
    },
    "TopicPage": {
      "type": "object", "required": ["next_page_token", "topics"],
      "properties": {
        "next_page_token": {"type": "string", "description": "Empty on the last page."},
        "topics": {"type": "array", "items": {"$ref": "#/components/schemas/Topic"}}
      }
    },
    "BatchLine": {
      "type": "object", "additionalProperties": false,
      "properties": {
        "key": {"type": ["string", "null"], "description": "Empty or absent: the server makes one."},
        "value": {"description": "A string is a message of that text; any other JSON value is a message of its text, byte for byte."},
        "value_base64": {"type": "string", "contentEncoding": "base64"}
      },
      "oneOf": [{"required": ["value"]}, {"required": ["value_base64"]}]
    },
    "BatchAccepted": {"type": "object", "required": ["accepted"], "properties": {"accepted": {"type": "integer", "minimum": 1}}},
    "Message": {
      "type": "object", "required": ["topic", "partition", "offset", "payload", "timestamp"],
      "properties": {
        "topic": {"type": "string"},
        "partition": {"type": "integer", "minimum": 0},
        "offset": {"type": "integer", "minimum": 0},
        "key": {"type": "string"},
        "payload": {"description": "The message itself if it is one JSON value, else a string of its text if that is UTF-8, else base64."},
        "payload_encoding": {"type": "string", "enum": ["base64"]},
        "timestamp": {"type": "integer", "description": "When it was committed: Unix time in seconds."},
        "receipt_handle": {"type": "string", "description": "To settle it with. Absent on replay."}
      }
    },
    "AckBatch": {
      "type": "object", "required": ["mode", "handles"], "additionalProperties": false,
      "properties": {
        "mode": {"type": "string", "enum": ["ack", "extend", "nack"]},
        "handles": {"type": "array", "minItems": 1, "maxItems": 1000, "items": {"type": "string"}}
      }
    },
    "AckResults": {
      "type": "object", "required": ["results"],
      "properties": {"results": {"type": "array", "items": {
        "type": "object", "required": ["handle", "status"],
        "properties": {"handle": {"type": "string"}, "status": {"type": "integer", "description": "What the single call would have answered: 204, 400, 404, 410, 421, 500, 502 or 503."}}
      }}}
    },
)json";

constexpr std::string_view kEnd = R"json(  }
}
}
)json";

}  // namespace

std::string_view openapi_document() {
  static const std::string document =
      cat(kBeginning, openapi_cluster_paths(), kNode, openapi_cluster_schemas(), kEnd);
  return document;
}

}  // namespace narad::api

// The OpenAPI 3.1 document of every route (http-api 7). openapi_test.cpp holds it against the table
// of routes and against the answers of the handlers.
#include "internal/api/routes.h"

namespace narad::api {
namespace {

constexpr std::string_view kDocument = R"json({
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
  "/v1/cluster/members": {
    "get": {
      "tags": ["cluster"], "operationId": "listMembers", "summary": "The members of the cluster, ascending by id",
      "responses": {
        "200": {"description": "As this node knows them.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Members"}}}},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "429": {"$ref": "#/components/responses/TooManyRequests"}
      }
    }
  },
  "/v1/cluster/members/{id}/decommission": {
    "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
    "post": {
      "tags": ["cluster"], "operationId": "decommissionMember", "summary": "Move everything off a member, then let it leave",
      "description": "The member takes no messages and no partitions any more, and is removed once it owns nothing and everything it took is handed over. Refused only for what would never pass. An order that holds already succeeds.",
      "parameters": [
        {"name": "dry_run", "in": "query", "description": "1: change nothing, and answer what would be so.", "schema": {"type": "string", "enum": ["1", "0", "true", "false"]}},
        {"name": "wal_lost", "in": "query", "description": "1: the member is dead, and what its ingress WAL held is given up.", "schema": {"type": "string", "enum": ["1", "0", "true", "false"]}}
      ],
      "responses": {
        "200": {"description": "Of a dry run.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/DrainVerdict"}}}},
        "204": {"description": "It drains, or did already, or has left."},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "409": {"$ref": "#/components/responses/Refused"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "502": {"$ref": "#/components/responses/Unreachable"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    },
    "delete": {
      "tags": ["cluster"], "operationId": "cancelDecommission", "summary": "Let a member stay that was to leave",
      "description": "Also gives up on the moves that its drain began; partitions that are gone already stay where they are.",
      "responses": {
        "204": {"description": "It stays."},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "409": {"$ref": "#/components/responses/Refused"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "502": {"$ref": "#/components/responses/Unreachable"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/cluster/members/{id}/safe-to-stop": {
    "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
    "get": {
      "tags": ["cluster"], "operationId": "safeToStop", "summary": "Whether a member may be stopped for a while",
      "description": "How things stand now, as the leader knows them; nothing is held as it is.",
      "responses": {
        "200": {"description": "The verdict, with everything that speaks against it.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/StopVerdict"}}}},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/cluster/rebalance": {
    "post": {
      "tags": ["cluster"], "operationId": "rebalance", "summary": "Plan moves now",
      "description": "The leader does so by itself every few seconds, and when members change.",
      "parameters": [
        {"name": "dry_run", "in": "query", "description": "1: only say what would move.", "schema": {"type": "string", "enum": ["1", "0", "true", "false"]}}
      ],
      "responses": {
        "200": {"description": "What was begun, or would be.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Rebalance"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "502": {"$ref": "#/components/responses/Unreachable"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/cluster/explain/{topic}/{partition}": {
    "parameters": [
      {"$ref": "#/components/parameters/topic"},
      {"name": "partition", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 0}}
    ],
    "get": {
      "tags": ["cluster"], "operationId": "explain", "summary": "Why a partition is where it is",
      "responses": {
        "200": {"description": "What the planner makes of it, and of each member.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Explanation"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/cluster/quarantine": {
    "get": {
      "tags": ["cluster"], "operationId": "listQuarantine", "summary": "Copies that nodes keep aside instead of deleting them",
      "description": "Every member is asked. One that does not answer within 1.5 s is named.",
      "parameters": [
        {"name": "node", "in": "query", "description": "Only of this member.", "schema": {"type": "string"}}
      ],
      "responses": {
        "200": {"description": "What those have that answered, by node and path.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Quarantine"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "429": {"$ref": "#/components/responses/TooManyRequests"}
      }
    }
  },
  "/v1/cluster/moves": {
    "get": {
      "tags": ["cluster"], "operationId": "listMoves", "summary": "Partitions on their way to another member",
      "parameters": [
        {"name": "detail", "in": "query", "description": "1: ask the destinations how far they are. One that does not answer within 1.5 s is named.", "schema": {"type": "string", "enum": ["1", "0", "true", "false"]}},
        {"name": "history", "in": "query", "description": "1: those that have ended, too.", "schema": {"type": "string", "enum": ["1", "0", "true", "false"]}},
        {"name": "limit", "in": "query", "description": "How many that have ended; more than 1000 counts as 1000.", "schema": {"type": "integer", "minimum": 1, "default": 1000}},
        {"name": "topic", "in": "query", "description": "Only of this topic.", "schema": {"type": "string"}},
        {"name": "node", "in": "query", "description": "Only from or to this node.", "schema": {"type": "string"}}
      ],
      "responses": {
        "200": {"description": "Sorted by topic and partition; empty when nothing moves.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Moves"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "429": {"$ref": "#/components/responses/TooManyRequests"}
      }
    },
    "post": {
      "tags": ["cluster"], "operationId": "startMove", "summary": "Move a partition to a node",
      "description": "Replaces a move of the partition to another place.",
      "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MoveWish"}}}},
      "responses": {
        "200": {"description": "It is there, or on its way there, already; nothing was changed.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MoveStarted"}}}},
        "202": {"description": "It is on its way; a partition that was never used is there.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MoveStarted"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "409": {"$ref": "#/components/responses/Refused"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/cluster/moves/{id}": {
    "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 1}}],
    "get": {
      "tags": ["cluster"], "operationId": "getMove", "summary": "One move, under way or ended",
      "responses": {
        "200": {"description": "The move; if it is under way, with what its destination says.", "content": {"application/json": {"schema": {"oneOf": [{"$ref": "#/components/schemas/Move"}, {"$ref": "#/components/schemas/EndedMove"}]}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "429": {"$ref": "#/components/responses/TooManyRequests"}
      }
    }
  },
  "/v1/cluster/moves/{topic}/{partition}/abort": {
    "parameters": [
      {"$ref": "#/components/parameters/topic"},
      {"name": "partition", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 0}}
    ],
    "post": {
      "tags": ["cluster"], "operationId": "abortMove", "summary": "Give up on the move of a partition",
      "description": "Harmless at any stage: the partition never left its owner. The outcome is read back from the leader.",
      "parameters": [
        {"name": "target", "in": "query", "description": "Only if it moves to this node.", "schema": {"type": "string"}}
      ],
      "responses": {
        "202": {"description": "The owner is the one it was, and that move is gone.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MoveAborted"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "409": {"$ref": "#/components/responses/Refused"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/healthz": {
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
    "Members": {
      "type": "object", "required": ["members", "leader"],
      "properties": {"leader": {"type": "string", "description": "The node that leads, as the asked one knows; empty if it knows none."}, "members": {"type": "array", "items": {
        "type": "object", "required": ["id", "addr", "status", "draining", "owned_partitions", "outbound_moves", "role", "cluster_addr", "last_seen_ms"],
        "properties": {
          "id": {"type": "string"},
          "addr": {"type": "string", "description": "Where its HTTP API listens."},
          "status": {"type": "string", "enum": ["alive", "dead"]},
          "draining": {"type": "boolean"},
          "owned_partitions": {"type": "integer", "minimum": 0},
          "outbound_moves": {"type": "integer", "minimum": 0},
          "role": {"type": "string", "enum": ["leader", "voter", "non-voter", "none"]},
          "cluster_addr": {"type": "string", "description": "Where other nodes reach it."},
          "last_seen_ms": {"type": "integer", "description": "When the leader last stored that it was heard, by the leader's clock; stored every 10 s."},
          "drain": {
            "type": "object", "description": "Of a member that is to leave: what is left, and what it waits for.",
            "required": ["leaving", "partitions", "unused", "inbound", "reasons"],
            "properties": {
              "leaving": {"type": "boolean", "description": "Nothing keeps it, and nothing can stop it any more."},
              "partitions": {"type": "integer", "minimum": 0, "description": "That it owns."},
              "unused": {"type": "integer", "minimum": 0, "description": "Of these: never used, so that they change hands at once."},
              "inbound": {"type": "integer", "minimum": 0, "description": "Moves that end there."},
              "reasons": {"type": "array", "items": {"$ref": "#/components/schemas/DrainReason"}}
            }
          },
          "decommission_blocked": {"type": "array", "description": "The rules of these reasons.", "items": {"type": "string"}}
        }
      }}}
    },
    "DrainReason": {
      "type": "object", "required": ["rule", "detail", "hopeless"],
      "properties": {
        "rule": {"type": "string", "enum": ["owns_partitions", "move_target", "min_voters", "no_live_majority", "is_leader", "no_receiver", "dead_owner", "ingress_backlog", "unreachable"]},
        "detail": {"type": "string", "description": "What is so, and what ends it."},
        "hopeless": {"type": "boolean", "description": "It does not pass by itself: an order to begin would be refused."}
      }
    },
    "DrainVerdict": {
      "type": "object", "required": ["node", "possible", "draining", "leaving", "partitions", "unused", "inbound", "reasons"],
      "properties": {
        "node": {"type": "string"},
        "possible": {"type": "boolean", "description": "No reason is hopeless."},
        "draining": {"type": "boolean", "description": "It drains already; the reasons are what it waits for."},
        "leaving": {"type": "boolean"},
        "partitions": {"type": "integer", "minimum": 0},
        "unused": {"type": "integer", "minimum": 0},
        "inbound": {"type": "integer", "minimum": 0},
        "reasons": {"type": "array", "items": {"$ref": "#/components/schemas/DrainReason"}}
      }
    },
    "StopVerdict": {
      "type": "object", "required": ["node", "safe", "reasons"],
      "properties": {
        "node": {"type": "string"},
        "safe": {"type": "boolean", "description": "There is no reason against it."},
        "reasons": {"type": "array", "items": {
          "type": "object", "required": ["rule", "detail"],
          "properties": {
            "rule": {"type": "string", "enum": ["owns_partitions", "move_source", "move_target", "ingress_backlog", "no_live_majority", "unreachable"]},
            "detail": {"type": "string", "description": "What is so, and what it would come to."}
          }
        }}
      }
    },
    "Rebalance": {
      "type": "object", "required": ["dry_run", "cleared", "moves", "wanted"],
      "properties": {
        "dry_run": {"type": "boolean"},
        "cleared": {"type": "array", "description": "Moves that were called off.", "items": {
          "type": "object", "required": ["topic", "partition", "to", "reason"],
          "properties": {"topic": {"type": "string"}, "partition": {"type": "integer", "minimum": 0}, "to": {"type": "string"}, "reason": {"type": "string"}}
        }},
        "moves": {"type": "array", "description": "As many as may begin now.", "items": {
          "type": "object", "required": ["topic", "partition", "from", "to", "to_disk", "reason", "at_once"],
          "properties": {
            "topic": {"type": "string"}, "partition": {"type": "integer", "minimum": 0},
            "from": {"type": "string"}, "to": {"type": "string"}, "to_disk": {"type": "string"}, "reason": {"type": "string"},
            "at_once": {"type": "boolean", "description": "It was never used: nothing is copied."}
          }
        }},
        "wanted": {"type": "integer", "minimum": 0, "description": "Moves that an even cluster takes, these included."}
      }
    },
    "Explanation": {
      "type": "object", "required": ["topic", "partition", "owner", "owner_disk", "used", "target", "target_disk", "verdict", "text", "would_go_to", "members"],
      "properties": {
        "topic": {"type": "string"},
        "partition": {"type": "integer", "minimum": 0},
        "owner": {"type": "string"},
        "owner_disk": {"type": "string"},
        "used": {"type": "boolean", "description": "It has held a message."},
        "target": {"type": "string", "description": "Where it is on its way to; empty if it is not."},
        "target_disk": {"type": "string"},
        "id": {"type": "integer", "minimum": 1, "description": "Of the move that is under way."},
        "verdict": {"type": "string", "description": "moves, waits, in_flight, at_home, pinned, held, dead_owner, disk_missing, no_receiver, no_room or unassigned."},
        "text": {"type": "string", "description": "The same in words."},
        "would_go_to": {"type": "string", "description": "Empty if the planner leaves it where it is."},
        "members": {"type": "array", "items": {
          "type": "object", "required": ["node", "standing", "owned", "share"],
          "properties": {
            "node": {"type": "string"},
            "standing": {"type": "string", "description": "Empty if it takes partitions; else dead, draining or leaving."},
            "owned": {"type": "integer", "minimum": 0, "description": "There, or on their way there."},
            "share": {"type": "integer", "minimum": 0, "description": "How many it is to have."}
          }
        }}
      }
    },
    "Quarantine": {
      "type": "object", "required": ["copies", "left_out", "unanswered"],
      "properties": {
        "copies": {"type": "array", "items": {
          "type": "object", "required": ["node", "kind", "topic", "disk", "path", "bytes"],
          "properties": {
            "node": {"type": "string"},
            "kind": {"type": "string", "enum": ["partition", "staged", "topic"], "description": "partition: the copy of a partition that lives elsewhere, or made room for another copy; staged: what a move that ended had copied; topic: a whole topic directory of a life that the metadata does not know."},
            "topic": {"type": "string", "description": "As far as the name of the copy says."},
            "partition": {"type": "integer", "minimum": 0},
            "disk": {"type": "string"},
            "path": {"type": "string", "description": "On that node."},
            "bytes": {"type": "integer", "minimum": 0},
            "why": {"type": "string", "description": "Left out if it is not known."},
            "since": {"type": "integer", "description": "Unix time in seconds; left out if it is not known."}
          }
        }},
        "left_out": {"type": "integer", "minimum": 0, "description": "Copies beyond the 2000 that one node names."},
        "unanswered": {"type": "array", "description": "Members whose copies are not known.", "items": {
          "type": "object", "required": ["node", "error"],
          "properties": {"node": {"type": "string"}, "error": {"type": "string"}}
        }}
      }
    },
    "Moves": {
      "type": "object", "required": ["moves"],
      "properties": {
        "moves": {"type": "array", "items": {"$ref": "#/components/schemas/Move"}},
        "history": {"type": "array", "description": "There if it was asked for: the ended ones, newest first.", "items": {"$ref": "#/components/schemas/EndedMove"}}
      }
    },
    "Move": {
      "type": "object", "required": ["topic", "partition", "from", "to", "id", "from_disk", "to_disk", "from_status", "to_status", "blocked"],
      "properties": {
        "topic": {"type": "string"},
        "partition": {"type": "integer", "minimum": 0},
        "from": {"type": "string", "description": "The owner."},
        "to": {"type": "string"},
        "id": {"type": "integer", "minimum": 1, "description": "Never used again for another move."},
        "from_disk": {"type": "string"},
        "to_disk": {"type": "string"},
        "reason": {"type": "string", "description": "joined, draining, operator, plan or disk."},
        "from_status": {"type": "string", "enum": ["alive", "dead", "draining", "not_a_member"]},
        "to_status": {"type": "string", "enum": ["alive", "dead", "draining", "not_a_member"]},
        "blocked": {"type": "array", "items": {"type": "string"}, "description": "What holds it up: source_dead, target_dead, target_not_member; with detail also what the destination says, such as copy_unverifiable, source_dead_copy_behind, source_went_back."},
        "started_at": {"type": "integer", "description": "Unix time in seconds."},
        "report": {"$ref": "#/components/schemas/MoveReport"},
        "report_error": {"type": "string", "description": "Why the destination was asked and there is no report."},
        "outcome": {"type": "string", "const": "running", "description": "Of a single move."}
      }
    },
    "MoveReport": {
      "type": "object", "description": "What the destination says of a move.",
      "required": ["phase", "bytes_done", "bytes_total", "bytes_per_second", "write_bytes_per_second", "passes", "attempts", "frozen_ms"],
      "properties": {
        "phase": {"type": "string", "description": "queued, copying, freezing, draining, fencing, installing, flipping, …"},
        "bytes_done": {"type": "integer", "minimum": 0},
        "bytes_total": {"type": "integer", "minimum": 0},
        "bytes_per_second": {"type": "integer", "minimum": 0},
        "write_bytes_per_second": {"type": "integer", "minimum": 0, "description": "Into the partition, meanwhile."},
        "seconds_left": {"type": "integer", "minimum": 0, "description": "Left out where it would be a guess."},
        "stalled_seconds": {"type": "integer", "minimum": 30, "description": "Since a byte arrived, if that is too long ago."},
        "passes": {"type": "integer", "minimum": 0},
        "attempts": {"type": "integer", "minimum": 0},
        "frozen_ms": {"type": "integer", "minimum": 0, "description": "How long the freeze in force, or the last one, has held up commits."},
        "last_error": {"type": "string"}
      }
    },
    "EndedMove": {
      "type": "object", "required": ["topic", "partition", "from", "to", "id", "from_disk", "to_disk", "reason", "outcome"],
      "properties": {
        "topic": {"type": "string"},
        "partition": {"type": "integer", "minimum": 0},
        "from": {"type": "string"},
        "to": {"type": "string"},
        "id": {"type": "integer", "minimum": 1},
        "from_disk": {"type": "string"},
        "to_disk": {"type": "string"},
        "reason": {"type": "string"},
        "outcome": {"type": "string", "enum": ["moved", "promoted", "given", "cleared", "replaced", "topic_deleted"], "description": "moved: by the owner's consent; promoted: the owner was dead; given: it was never used, there was nothing to copy; cleared: given up, why says for what reason."},
        "why": {"type": "string"},
        "started_at": {"type": "integer", "description": "Unix time in seconds."},
        "ended_at": {"type": "integer", "description": "Unix time in seconds."},
        "took_ms": {"type": "integer", "minimum": 0},
        "receipt": {"type": "object", "description": "What the move brought, as its destination counted it."}
      }
    },
    "MoveWish": {
      "type": "object", "required": ["topic", "partition", "to"], "additionalProperties": false,
      "properties": {
        "topic": {"type": "string"},
        "partition": {"type": "integer", "minimum": 0},
        "to": {"type": "string", "description": "The id of a member."},
        "disk": {"type": "string", "default": "", "description": "The id of one of its disks; empty: the one with the fewest partitions."}
      }
    },
    "MoveStarted": {
      "type": "object", "required": ["topic", "partition", "from", "to", "to_disk", "outcome"],
      "properties": {
        "topic": {"type": "string"},
        "partition": {"type": "integer", "minimum": 0},
        "from": {"type": "string"},
        "to": {"type": "string"},
        "to_disk": {"type": "string"},
        "id": {"type": "integer", "minimum": 1, "description": "Of the move; left out if there is none."},
        "outcome": {"type": "string", "enum": ["started", "given", "there", "on_its_way"]}
      }
    },
    "MoveAborted": {
      "type": "object", "required": ["topic", "partition", "id", "from", "to", "outcome", "owner", "target"],
      "properties": {
        "topic": {"type": "string"},
        "partition": {"type": "integer", "minimum": 0},
        "id": {"type": "integer", "minimum": 1, "description": "Of the move that was aborted."},
        "from": {"type": "string"},
        "to": {"type": "string"},
        "outcome": {"type": "string", "const": "aborted"},
        "owner": {"type": "string", "description": "Now."},
        "target": {"type": "string", "description": "Now: empty, or another node if it was planned again meanwhile."}
      }
    }
  }
}
}
)json";

}  // namespace

std::string_view openapi_document() { return kDocument; }

}  // namespace narad::api

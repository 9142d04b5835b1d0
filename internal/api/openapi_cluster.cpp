// The OpenAPI document: routes about the cluster, and what their bodies look like (openapi.cpp has
// the rest).
#include "internal/api/openapi.h"

namespace narad::api {
namespace {

// Members of "paths", each with the comma behind it.
constexpr std::string_view kPaths = R"json(  "/v1/cluster/members": {
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
  "/v1/cluster/moves/{topic}/{partition}/pause": {
    "parameters": [
      {"$ref": "#/components/parameters/topic"},
      {"name": "partition", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 0}}
    ],
    "post": {
      "tags": ["cluster"], "operationId": "pauseMove", "summary": "Let a move wait",
      "description": "What is copied stays. A freeze is let go first; one whose new owner is being entered comes to its end before it waits. Ends with the move.",
      "responses": {
        "200": {"description": "It is so, now or before.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MovesPaused"}}}},
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
  "/v1/cluster/moves/{topic}/{partition}/resume": {
    "parameters": [
      {"$ref": "#/components/parameters/topic"},
      {"name": "partition", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 0}}
    ],
    "post": {
      "tags": ["cluster"], "operationId": "resumeMove", "summary": "Let a move go on",
      "description": "Takes back its own pause; one of a node or of all moves goes on to hold it, and is named.",
      "responses": {
        "200": {"description": "It is so, now or before.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MovesPaused"}}}},
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
  "/v1/cluster/moves/pause": {
    "post": {
      "tags": ["cluster"], "operationId": "pauseMoves", "summary": "Let all moves wait",
      "description": "Those under way and those that begin later, until it is taken back.",
      "parameters": [
        {"name": "node", "in": "query", "description": "Only what moves from or to this node.", "schema": {"type": "string", "minLength": 1}}
      ],
      "responses": {
        "200": {"description": "It is so, now or before.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MovesPaused"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/cluster/moves/resume": {
    "post": {
      "tags": ["cluster"], "operationId": "resumeMoves", "summary": "Take such a pause back",
      "description": "Moves that something else makes wait go on waiting.",
      "parameters": [
        {"name": "node", "in": "query", "description": "Only what moves from or to this node.", "schema": {"type": "string", "minLength": 1}}
      ],
      "responses": {
        "200": {"description": "It is so, now or before.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MovesPaused"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "404": {"$ref": "#/components/responses/NotFound"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    }
  },
  "/v1/cluster/throttle": {
    "get": {
      "tags": ["cluster"], "operationId": "getThrottle", "summary": "How fast partitions may move",
      "responses": {
        "200": {"description": "As this node knows it.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Throttle"}}}},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "429": {"$ref": "#/components/responses/TooManyRequests"}
      }
    },
    "put": {
      "tags": ["cluster"], "operationId": "setThrottle", "summary": "Say how fast partitions may move",
      "description": "Counts at once, for moves under way too, on every node and in place of moves.max_bytes_per_second of its configuration.",
      "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ThrottleWish"}}}},
      "responses": {
        "200": {"description": "It is so, now or before.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Throttle"}}}},
        "400": {"$ref": "#/components/responses/BadRequest"},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "413": {"$ref": "#/components/responses/TooLarge"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "500": {"$ref": "#/components/responses/Failed"},
        "503": {"$ref": "#/components/responses/Unavailable"}
      }
    },
    "delete": {
      "tags": ["cluster"], "operationId": "clearThrottle", "summary": "Let each node go by its own configuration",
      "responses": {
        "200": {"description": "It is so, now or before.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Throttle"}}}},
        "401": {"$ref": "#/components/responses/Unauthenticated"},
        "403": {"$ref": "#/components/responses/Forbidden"},
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
)json";

// Members of "components" / "schemas", without a comma behind the last.
constexpr std::string_view kSchemas = R"json(    "Members": {
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
        "paused": {"type": "boolean", "const": true, "description": "There if all moves were paused at once."},
        "max_bytes_per_second": {"type": "integer", "minimum": 0, "description": "What each node may receive by moves, if that was set for all of them; 0: no limit."},
        "history": {"type": "array", "description": "There if it was asked for: the ended ones, newest first.", "items": {"$ref": "#/components/schemas/EndedMove"}}
      }
    },
    "MovesPaused": {
      "type": "object", "required": ["paused", "changed"],
      "properties": {
        "topic": {"type": "string", "description": "Of one move."},
        "partition": {"type": "integer", "minimum": 0},
        "id": {"type": "integer", "minimum": 1},
        "node": {"type": "string", "description": "Of the moves of one node. Neither: of all moves."},
        "paused": {"type": "boolean", "description": "What was asked for, and is so."},
        "changed": {"type": "boolean", "description": "false: it was so before."},
        "paused_by": {"$ref": "#/components/schemas/PausedBy"}
      }
    },
    "PausedBy": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["move", "source", "target", "cluster"]}, "description": "What makes a move wait: its own pause, that of all moves of one of its nodes, that of all moves. Left out if nothing does."},
    "Throttle": {
      "type": "object", "required": ["set"],
      "properties": {
        "set": {"type": "boolean", "description": "false: each node goes by moves.max_bytes_per_second of its own configuration."},
        "max_bytes_per_second": {"type": "integer", "minimum": 0, "description": "What each node may receive by moves, and what it may send; one budget for all of them in each direction. 0: no limit."},
        "changed": {"type": "boolean", "description": "After an order: false if it was so before."}
      }
    },
    "ThrottleWish": {
      "type": "object", "required": ["max_bytes_per_second"], "additionalProperties": false,
      "properties": {"max_bytes_per_second": {"type": "integer", "minimum": 0, "description": "At least 1024; 0: no limit."}}
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
        "paused_by": {"$ref": "#/components/schemas/PausedBy"},
        "max_bytes_per_second": {"type": "integer", "minimum": 1024, "description": "What this move is held to, if it was ordered so."},
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
        "phase": {"type": "string", "description": "queued, copying, freezing, draining, fencing, installing, flipping, paused, …"},
        "bytes_done": {"type": "integer", "minimum": 0},
        "bytes_total": {"type": "integer", "minimum": 0},
        "bytes_per_second": {"type": "integer", "minimum": 0},
        "write_bytes_per_second": {"type": "integer", "minimum": 0, "description": "Into the partition, meanwhile."},
        "budget_bytes_per_second": {"type": "integer", "minimum": 1, "description": "The most that it gets, by the throttle of all moves, its share of what the source may send, or its own; left out without one. Below what is written meanwhile it will not converge: the rest is copied while the partition is frozen."},
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
        "disk": {"type": "string", "default": "", "description": "The id of one of its disks; empty: the one with the fewest partitions."},
        "max_bytes_per_second": {"type": "integer", "minimum": 0, "default": 0, "description": "What this move is held to, beside the throttle of all; at least 1024. 0: nothing of its own."}
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
        "outcome": {"type": "string", "enum": ["started", "given", "there", "on_its_way"]},
        "will_not_converge": {
          "type": "object", "required": ["write_bytes_per_second", "budget_bytes_per_second"],
          "description": "There if the partition takes in no less than the move may fetch: the rest will be copied while it is frozen.",
          "properties": {
            "write_bytes_per_second": {"type": "integer", "minimum": 1},
            "budget_bytes_per_second": {"type": "integer", "minimum": 1}
          }
        }
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
)json";

}  // namespace

std::string_view openapi_cluster_paths() { return kPaths; }
std::string_view openapi_cluster_schemas() { return kSchemas; }

}  // namespace narad::api

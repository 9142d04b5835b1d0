#pragma once
// A message as JSON (http-api 1.10), written by hand: this is the hot path of consume. Pure.
#include <string>
#include <string_view>

#include "internal/model/message.h"
#include "internal/model/receipt.h"

namespace narad::api {

struct MessageFormat {
  bool base64 = false;  // every payload as base64 (`encoding=base64`)
  bool lines = false;   // one message a line: a payload that contains CR or LF as base64
};

// Appends the object, keys in the order of the contract, no newline. The payload is spliced in as
// it is if it is one JSON value, else written as a string if it is UTF-8, else as base64 with
// `payload_encoding`. `handle` is null on replay, and then left out.
void append_message(std::string& out, std::string_view topic, PartitionId partition,
                    const StoredRecord& record, const ReceiptHandle* handle, MessageFormat format);

}  // namespace narad::api

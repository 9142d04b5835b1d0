// Any bytes as a preamble. Holds: no crash, nothing over its bound is let through, and what was
// understood is written as it was read.
#include "internal/wire/preamble.h"

#include <algorithm>
#include <cstdlib>

#include "pkg/base/text.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_printable(const std::string& text) {
  check(std::none_of(text.begin(), text.end(),
                     [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  using namespace narad::wire;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  if (size < kPreambleHeaderBytes) return 0;
  auto header = decode_preamble_header(bytes.first(kPreambleHeaderBytes));
  if (header) check(header.value().body_bytes <= kPreambleBodyMax);
  const ByteView rest = bytes.subspan(kPreambleHeaderBytes);
  const ByteView body = rest.first(std::min<std::size_t>(rest.size(), kPreambleBodyMax));
  if (auto hello = decode_hello(body)) {
    check_printable(hello.value().node_id);
    const Bytes written = encode(hello.value());
    check(written.size() <= kPreambleHeaderBytes + body.size());
    check(std::equal(written.begin() + kPreambleHeaderBytes, written.end(), body.begin()));
  }
  if (auto proof = decode_proof(body)) {
    check(same_proof(proof.value(), proof.value()));
  }
  const Refusal refusal = decode_refusal(body);
  check_printable(refusal.text);
  check(refusal.text.size() <= kRefusalTextMax);
  check(is_utf8(refusal.text));
  return 0;
}

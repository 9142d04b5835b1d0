#include "internal/wire/preamble.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "pkg/base/text.h"

namespace narad::wire {
namespace {

constexpr std::size_t kHeader = kPreambleHeaderBytes;

Hello some_hello() {
  Hello hello;
  hello.lane = 2;
  hello.cluster_id = 0x1122334455667788;
  hello.replica_id = 0x99aabbccddeeff00;
  for (std::size_t i = 0; i < hello.nonce.size(); ++i) hello.nonce[i] = std::byte(i);
  hello.node_id = "n1";
  return hello;
}

ByteView body_of(ByteView message) { return message.subspan(kHeader); }
PreambleHeader header_of(ByteView message) {
  auto header = decode_preamble_header(message.first(kHeader));
  EXPECT_TRUE(header);
  return header.value();
}

// Lines "name hex". The same for ever: another form is another version beside this one.
std::map<std::string, std::string> golden() {
  std::ifstream in("testdata/wire/preamble.v1.txt");
  EXPECT_TRUE(in.good());
  std::map<std::string, std::string> all;
  std::string name, hex;
  while (in >> name >> hex) all[name] = hex;
  return all;
}

TEST(Preamble, WrittenToday_IsByteForByteTheGoldenFile) {
  Hello other = some_hello();
  other.node_id = "n2";
  other.nonce.fill(std::byte{0xee});
  const Bytes hello = encode(some_hello()), called = encode(other);
  const std::map<std::string, std::string> today{
      {"hello", to_hex(hello)},
      {"proof_caller", to_hex(encode(prove("secret", ProofRole::caller, hello, called)))},
      {"proof_called", to_hex(encode(prove("secret", ProofRole::called, hello, called)))},
      {"proof_no_secret", to_hex(encode(prove("", ProofRole::caller, hello, called)))},
      {"refusal", to_hex(encode(Refusal{RefusalCode::cluster, "node n1 belongs elsewhere"}))},
  };
  if (std::getenv("NARAD_WRITE_GOLDEN") != nullptr) {
    std::ofstream out("testdata/wire/preamble.v1.txt");
    for (const auto& [name, hex] : today) out << name << ' ' << hex << '\n';
  }
  EXPECT_EQ(golden(), today);
}

TEST(Preamble, EveryMessage_IsReadAsItWasWritten) {
  const Bytes hello = encode(some_hello());
  EXPECT_EQ(header_of(hello).version, kPreambleVersion);
  EXPECT_EQ(header_of(hello).kind, static_cast<std::uint8_t>(PreambleKind::hello));
  EXPECT_EQ(header_of(hello).body_bytes, hello.size() - kHeader);
  EXPECT_EQ(decode_hello(body_of(hello)).value(), some_hello());
  const Refusal refusal{RefusalCode::proof, "wrong secret ü"};
  EXPECT_EQ(decode_refusal(body_of(encode(refusal))), refusal);
  const Proof proof = prove("s", ProofRole::caller, hello, hello);
  EXPECT_EQ(decode_proof(body_of(encode(proof))).value(), proof);
}

TEST(Preamble, Hello_OfALaterRelease_MayBringMore) {
  Bytes hello = encode(some_hello());
  hello.push_back(std::byte{7});
  EXPECT_EQ(decode_hello(body_of(hello)).value(), some_hello());
}

TEST(Preamble, Hello_CutAnywhere_IsRefused) {
  const Bytes hello = encode(some_hello());
  for (std::size_t n = 0; n < hello.size() - kHeader; ++n) {
    auto r = decode_hello(body_of(hello).first(n));
    ASSERT_FALSE(r) << n;
    EXPECT_EQ(r.error().code(), Errc::invalid_argument);
  }
}

TEST(Preamble, Hello_WithoutOrWithAnUnprintableNodeId_IsRefused) {
  Bytes hello = encode(some_hello());
  for (std::uint8_t c : {0x00, 0x0a, 0x1b, 0x7f, 0xff}) {
    hello.back() = std::byte{c};
    EXPECT_FALSE(decode_hello(body_of(hello))) << int{c};
  }
  hello.resize(hello.size() - 2);
  hello.back() = std::byte{0};  // the length
  EXPECT_FALSE(decode_hello(body_of(hello)));
}

TEST(Preamble, Header_ThatIsNoneOrAnnouncesTooMuch_IsRefused) {
  Bytes header = encode(some_hello());
  header.resize(kHeader);
  header[8] = std::byte{0x01};
  header[9] = std::byte{0x04};  // 1025
  EXPECT_FALSE(decode_preamble_header(header));
  header[8] = std::byte{0};  // 1024
  EXPECT_TRUE(decode_preamble_header(header));
  header[4] = std::byte{9};  // the version is judged by others
  header[6] = std::byte{77};
  EXPECT_EQ(decode_preamble_header(header).value().version, 9);
  header[0] = std::byte{'G'};
  EXPECT_EQ(decode_preamble_header(header).error().text(),
            "this is not the protocol of Narad's cluster port");
}

TEST(Preamble, Proof_OfAnotherLength_IsRefused) {
  EXPECT_FALSE(decode_proof(Bytes(31)));
  EXPECT_FALSE(decode_proof(Bytes(33)));
  EXPECT_TRUE(decode_proof(Bytes(32)));
}

TEST(Preamble, Refusal_OfAnyBytes_GivesPrintableText) {
  EXPECT_EQ(decode_refusal({}).text, "");
  const Bytes bytes =
      to_bytes(std::string_view("\x63\x05\x00"
                                "a\nb\x1b[",
                                8));
  const Refusal refusal = decode_refusal(bytes);
  EXPECT_EQ(static_cast<int>(refusal.code), 0x63);
  EXPECT_EQ(refusal.text, "a?b?[");
  EXPECT_EQ(to_string(refusal.code), "unknown");
  // Announced longer than it is.
  EXPECT_EQ(decode_refusal(to_bytes(std::string_view("\x01\xff\xff"
                                                     "abc",
                                                     6)))
                .text,
            "abc");
  EXPECT_TRUE(is_utf8(decode_refusal(to_bytes(std::string_view("\x01\x02\x00\xff\xfe", 5))).text));
}

TEST(Preamble, Refusal_WithALongText_IsCutBetweenCharacters) {
  std::string text(kRefusalTextMax - 1, 'x');
  text += "ü and so on";
  const Refusal read = decode_refusal(body_of(encode(Refusal{RefusalCode::replica, text})));
  EXPECT_EQ(read.text, std::string(kRefusalTextMax - 1, 'x'));
}

TEST(Preamble, Proof_DependsOnEverythingSaid) {
  const Bytes caller = encode(some_hello());
  Hello other = some_hello();
  other.node_id = "n2";
  const Bytes called = encode(other);
  const Proof proof = prove("secret", ProofRole::caller, caller, called);
  EXPECT_TRUE(same_proof(proof, prove("secret", ProofRole::caller, caller, called)));
  EXPECT_FALSE(same_proof(proof, prove("secret", ProofRole::called, caller, called)));
  EXPECT_FALSE(same_proof(proof, prove("secreT", ProofRole::caller, caller, called)));
  EXPECT_FALSE(same_proof(proof, prove("", ProofRole::caller, caller, called)));
  EXPECT_FALSE(same_proof(proof, prove("secret", ProofRole::caller, called, caller)));
  for (std::size_t i = 0; i < caller.size(); ++i) {
    Bytes changed = caller;
    changed[i] ^= std::byte{1};
    EXPECT_FALSE(same_proof(proof, prove("secret", ProofRole::caller, changed, called))) << i;
    changed = called;
    changed[i] ^= std::byte{1};
    EXPECT_FALSE(same_proof(proof, prove("secret", ProofRole::caller, caller, changed))) << i;
  }
}

}  // namespace
}  // namespace narad::wire

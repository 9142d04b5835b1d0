#include <gtest/gtest.h>

#include "internal/model/receipt.h"
#include "internal/model/topic.h"

namespace narad {
namespace {

TEST(TopicName, ContractPattern_IsEnforced) {
  for (std::string_view good :
       std::initializer_list<std::string_view>{"a", "orders", "A.b_c-9", "..."}) {
    EXPECT_TRUE(validate_topic_name(good)) << good;
  }
  EXPECT_TRUE(validate_topic_name(std::string(255, 'a')));
  for (std::string_view bad : {"", ".", "..", "a/b", "a b", "\xC3\xA9", "a\n"}) {
    EXPECT_EQ(validate_topic_name(bad).error().code(), Errc::invalid_argument) << bad;
  }
  EXPECT_FALSE(validate_topic_name(std::string(256, 'a')));
}

TEST(PartitionOfKey, ContractTable_Matches) {
  EXPECT_EQ(partition_of_key("k", 3).value(), 0u);
  EXPECT_EQ(partition_of_key("a", 6).value(), 4u);
  EXPECT_EQ(partition_of_key("customer-42", 8).value(), 6u);
  EXPECT_EQ(partition_of_key("recovery-probe", 4).value(), 1u);
}

TEST(PartitionDirectory, Names_AreFiveDigitsOrMore) {
  EXPECT_EQ(partition_directory_name(PartitionId(3)), "p00003");
  EXPECT_EQ(partition_directory_name(PartitionId(123456)), "p123456");
}

TEST(ReceiptHandle, TextForm_RoundTrips) {
  const ReceiptHandle handle{PartitionId(2), Offset(0), 17};
  EXPECT_EQ(to_string(handle), "2:0:17");
  EXPECT_EQ(parse_receipt_handle("2:0:17").value(), handle);
  EXPECT_EQ(parse_receipt_handle("0:9223372036854775807:9223372036854775807").value().nonce,
            9223372036854775807u);
  EXPECT_EQ(parse_receipt_handle("4294967299:0:1").value().partition.value(), 4294967295u);
}

TEST(ReceiptHandle, AnythingButThreeNumbers_IsInvalidArgument) {
  for (std::string_view bad :
       {"", "1", "1:2", "1:2:", ":2:3", "1::3", "1:2:0", "1:2:3:4", "-1:2:3", "+1:2:3", "1:2: 3",
        "a:2:3", "1:9223372036854775808:3", "1:2:18446744073709551616", "1:2:3\n"}) {
    auto parsed = parse_receipt_handle(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code(), Errc::invalid_argument) << bad;
  }
}

}  // namespace
}  // namespace narad

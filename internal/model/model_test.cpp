#include <gtest/gtest.h>

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

}  // namespace
}  // namespace narad

#include "pkg/env/handlers.h"

#include <gtest/gtest.h>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <vector>

namespace narad {
namespace {

TEST(Complete, CalledOnTheLoop_RunsTheHandlerAfterTheCaller) {
  asio::io_context loop;
  std::vector<int> order;
  asio::post(loop, [&] {
    VoidHandler erased(asio::bind_executor(asio::any_io_executor(loop.get_executor()),
                                           [&](error_code) { order.push_back(2); }));
    VoidHandler plain(
        asio::bind_executor(loop.get_executor(), [&](error_code) { order.push_back(3); }));
    complete(std::move(erased), error_code{});
    complete(std::move(plain), error_code{});
    order.push_back(1);
  });
  loop.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Complete, SeveralHandlers_RunInTheOrderOfTheCalls) {
  asio::io_context loop;
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    complete(IoHandler(asio::bind_executor(
                 loop.get_executor(), [&, i](error_code, std::size_t) { order.push_back(i); })),
             error_code{}, std::size_t{0});
  }
  EXPECT_TRUE(order.empty());
  loop.run();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace narad

#include "pkg/sim/sim_net.h"

#include <gtest/gtest.h>

#include <boost/system/system_error.hpp>
#include <chrono>
#include <set>

#include "pkg/async/event.h"
#include "pkg/async/stream_io.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/sim/machine.h"

namespace narad::sim {
namespace {

using namespace std::chrono_literals;

// A world of three machines; tests start tasks on them.
struct World {
  explicit World(std::uint64_t seed = 1) : sim(seed), net(sim) {
    for (NodeId id = 0; id < 3; ++id) {
      machines.push_back(std::make_unique<Machine>(sim, net, id, cat("n", id)));
      boot(id);
    }
  }
  void boot(NodeId id) {
    machines[static_cast<std::size_t>(id)]->boot(
        [](Env& env) { return std::make_shared<TaskGroup>(env); });
  }
  Machine& machine(NodeId id) { return *machines[static_cast<std::size_t>(id)]; }
  Env& env(NodeId id) { return machine(id).env(); }
  template <class F>
  void spawn(NodeId id, F make) {
    machine(id).component<TaskGroup>().spawn("test", make(env(id)));
  }

  Sim sim;
  SimNet net;
  std::vector<std::unique_ptr<Machine>> machines;
};

// What the tasks of a test saw; outlives every node.
struct Seen {
  std::string received;
  error_code read_end, write_end, connect_end, accept_end;
  std::vector<std::size_t> reads;
  std::size_t written = 0;
  Nanos ended{-1};
  int accepted = 0, refused = 0;
  Endpoint peer_of_client, peer_of_server;
  bool done = false;
};
using SeenPtr = std::shared_ptr<Seen>;

Task<void> receive_all(Env& env, std::unique_ptr<Stream> stream, SeenPtr seen) {
  std::vector<char> buffer(1'500);
  for (;;) {
    auto [ec, n] = co_await read_some(*stream, asio::buffer(buffer));
    if (ec) {
      seen->read_end = ec;
      break;
    }
    seen->reads.push_back(n);
    seen->received.append(buffer.data(), n);
  }
  seen->ended = env.clock.mono();
  seen->done = true;
}

Task<void> serve_one(Env& env, SeenPtr seen) {
  auto listener = env.net.listen(Endpoint{"", 80});
  EXPECT_TRUE(listener);
  auto owned = std::move(listener.value());
  auto stream = co_await accept(*owned);
  ++seen->accepted;
  seen->peer_of_server = stream->peer();
  co_await receive_all(env, std::move(stream), seen);
}

Task<void> send_text(Env& env, Endpoint to, std::string text, SeenPtr seen, Nanos linger = 0ns) {
  std::unique_ptr<Stream> stream;
  try {
    stream = co_await connect(env, to);
  } catch (const boost::system::system_error& e) {
    seen->connect_end = e.code();
    seen->ended = env.clock.mono();
  }
  if (!stream) co_return;
  seen->peer_of_client = stream->peer();
  std::string_view rest = text;
  while (!rest.empty()) {
    auto [ec, n] = co_await write_some(*stream, buffers_of(rest));
    if (ec) {
      seen->write_end = ec;
      seen->ended = env.clock.mono();
      break;
    }
    seen->written += n;
    rest.remove_prefix(n);
  }
  if (linger > 0ns) co_await sleep_for(env, linger);
}

std::string pattern(std::size_t n) {
  std::string out;
  for (std::size_t i = 0; out.size() < n; ++i) out += cat(i, ".");
  out.resize(n);
  return out;
}

TEST(SimNet, BytesOfOneStream_ArriveWholeInOrderAndSplitAtRandom) {
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    World world(seed);
    world.net.link.slow = 50'000;
    auto seen = std::make_shared<Seen>();
    const std::string text = pattern(20'000 + seed * 1'000);
    world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
    world.sim.run_for(1ms);
    world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, text, seen); });
    ASSERT_TRUE(world.sim.run_until([&] { return seen->done; }, 60s)) << "seed " << seed;
    EXPECT_EQ(seen->received, text) << "seed " << seed;
    EXPECT_EQ(seen->read_end, asio::error::eof);
    sizes.insert(seen->reads.begin(), seen->reads.end());
  }
  EXPECT_GT(sizes.size(), 50u);
}

TEST(SimNet, Peer_NamesTheOtherEnd) {
  World world;
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
  world.sim.run_for(1ms);
  world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, "x", seen); });
  world.sim.run_for(1s);
  EXPECT_EQ(seen->peer_of_client, (Endpoint{"n0", 80}));
  EXPECT_EQ(seen->peer_of_server.host, "n1");
  EXPECT_GE(seen->peer_of_server.port, 32'768);
}

Task<void> listen_checks(Env& env, SeenPtr seen) {
  auto first = env.net.listen(Endpoint{"", 80});
  EXPECT_TRUE(first);
  auto again = env.net.listen(Endpoint{"127.0.0.1", 80});
  EXPECT_FALSE(again);
  if (!again) {
    EXPECT_EQ(again.error().os_errno(), EADDRINUSE);
    EXPECT_EQ(again.error().text(), "listen 127.0.0.1:80: Address already in use");
  }
  auto foreign = env.net.listen(Endpoint{"n1", 81});
  EXPECT_FALSE(foreign);
  if (!foreign) {
    EXPECT_EQ(foreign.error().os_errno(), EADDRNOTAVAIL);
  }
  auto any = env.net.listen(Endpoint{"", 0});
  EXPECT_TRUE(any);
  if (any) {
    EXPECT_GE(any.value()->local().port, 32'768);
  }
  first.value().reset();
  EXPECT_TRUE(env.net.listen(Endpoint{"", 80}));
  seen->done = true;
  co_return;
}

TEST(SimNet, ListenOnATakenForeignOrNoPort_SaysSo) {
  World world;
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return listen_checks(env, seen); });
  world.sim.run_for(1s);
  EXPECT_TRUE(seen->done);
}

TEST(SimNet, ConnectToNobody_IsRefusedUnknownOrTimesOut) {
  World world;
  auto refused = std::make_shared<Seen>(), unknown = std::make_shared<Seen>(),
       off = std::make_shared<Seen>();
  world.machine(2).kill(Machine::Kill::power_cut);
  world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, "x", refused); });
  world.spawn(1, [&](Env& env) { return send_text(env, {"n9", 80}, "x", unknown); });
  world.spawn(1, [&](Env& env) { return send_text(env, {"n2", 80}, "x", off); });
  world.sim.run_for(60s);
  EXPECT_EQ(refused->connect_end, asio::error::connection_refused);
  EXPECT_LT(refused->ended, 1s);
  EXPECT_EQ(unknown->connect_end, asio::error::host_not_found);
  EXPECT_EQ(off->connect_end, asio::error::timed_out);
  EXPECT_GE(off->ended, 15s);
}

TEST(SimNet, ConnectToAnotherNodesLoopback_IsRefused) {
  World world;
  auto seen = std::make_shared<Seen>();
  const auto local_server = [](Env& env, SeenPtr seen) -> Task<void> {
    auto listener = env.net.listen(Endpoint{"127.0.0.1", 80});
    auto owned = std::move(listener.value());
    for (;;) {
      auto stream = co_await accept(*owned);
      ++seen->accepted;
    }
  };
  world.spawn(0, [&](Env& env) { return local_server(env, seen); });
  world.sim.run_for(1ms);
  world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, "x", seen); });
  world.sim.run_for(1s);
  EXPECT_EQ(seen->connect_end, asio::error::connection_refused);
  world.spawn(0, [&](Env& env) { return send_text(env, {"localhost", 80}, "x", seen); });
  world.sim.run_for(1s);
  EXPECT_EQ(seen->accepted, 1);
}

// ---- blocks ------------------------------------------------------------------------------------

TEST(SimNet, BlockedBytes_WaitAndArriveWhenItIsLiftedWithoutAHole) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World world(seed);
    auto seen = std::make_shared<Seen>();
    const std::string text = pattern(30'000);
    world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
    world.sim.run_for(1ms);
    world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, text, seen, 30s); });
    world.sim.run_until([&] { return seen->accepted > 0; }, 1s);
    world.net.block(1, 0);
    world.sim.run_for(5s);
    EXPECT_LT(seen->received.size(), text.size());
    EXPECT_GT(world.net.stats.held, 0u);
    world.net.heal();
    world.sim.run_for(40s);
    EXPECT_EQ(seen->received, text) << "seed " << seed;
    EXPECT_EQ(seen->read_end, asio::error::eof);
  }
}

TEST(SimNet, BlockLongerThanPatience_ResetsTheSenderAndNothingArrivesLater) {
  World world;
  auto seen = std::make_shared<Seen>();
  const std::string text = pattern(500'000);
  world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
  world.sim.run_for(1ms);
  world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, text, seen); });
  world.sim.run_until([&] { return seen->received.size() > 1'000; }, 1s);
  world.net.block(1, 0);
  world.sim.run_for(20s);
  EXPECT_EQ(seen->write_end, asio::error::timed_out);
  const std::size_t received = seen->received.size();
  world.net.heal();
  world.sim.run_for(60s);
  EXPECT_EQ(seen->received, text.substr(0, seen->received.size()));
  EXPECT_EQ(seen->received.size(), received);
}

TEST(SimNet, OneWayBlockOfTheAnswers_ResetsTheWriterToo) {
  World world;
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
  world.sim.run_for(1ms);
  const std::string text = pattern(500'000);
  world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, text, seen); });
  world.sim.run_until([&] { return seen->received.size() > 1'000; }, 1s);
  world.net.block(0, 1);  // the data arrives, the acknowledgements do not
  world.sim.run_for(60s);
  EXPECT_EQ(seen->write_end, asio::error::timed_out);
  EXPECT_EQ(seen->received, text.substr(0, seen->received.size()));
}

TEST(SimNet, ConnectIntoABlock_GoesThroughWhenItIsLiftedInTime) {
  for (auto [from, to] : {std::pair(1, 0), std::pair(0, 1)}) {
    World world;
    auto seen = std::make_shared<Seen>();
    world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
    world.sim.run_for(1ms);
    world.net.block(from, to);
    world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, "hello", seen); });
    world.sim.run_for(3s);
    EXPECT_TRUE(seen->received.empty());
    EXPECT_FALSE(seen->connect_end);
    world.net.heal();
    world.sim.run_for(10s);
    EXPECT_EQ(seen->received, "hello");
  }
}

TEST(SimNet, Partition_CutsBothWaysBetweenTheSidesOnly) {
  World world;
  world.net.partition({0});
  EXPECT_TRUE(world.net.blocked(0, 1));
  EXPECT_TRUE(world.net.blocked(1, 0));
  EXPECT_TRUE(world.net.blocked(2, 0));
  EXPECT_FALSE(world.net.blocked(1, 2));
  EXPECT_FALSE(world.net.blocked(0, 0));
  world.net.unblock(0, 1);
  EXPECT_FALSE(world.net.blocked(0, 1));
  world.net.heal();
  EXPECT_FALSE(world.net.blocked(1, 0));
}

// ---- resets and deaths -------------------------------------------------------------------------

TEST(SimNet, RandomResets_LeaveAPrefixNeverAHole) {
  int resets = 0, whole = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    World world(seed);
    world.net.link.reset = 10'000;
    auto seen = std::make_shared<Seen>();
    const std::string text = pattern(100'000);
    world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
    world.sim.run_for(1ms);
    world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, text, seen); });
    world.sim.run_until([&] { return seen->done; }, 60s);
    ASSERT_LE(seen->received.size(), text.size());
    EXPECT_EQ(seen->received, text.substr(0, seen->received.size())) << "seed " << seed;
    if (seen->read_end == asio::error::eof) {
      EXPECT_EQ(seen->received, text);
      ++whole;
    } else {
      EXPECT_EQ(seen->read_end, asio::error::connection_reset);
      ++resets;
    }
  }
  EXPECT_GT(resets, 10);
  EXPECT_GT(whole, 5);
}

TEST(SimNet, ResetConnections_EndsBothSides) {
  World world;
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
  world.sim.run_for(1ms);
  const std::string text = pattern(1'000'000);
  world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, text, seen); });
  world.sim.run_until([&] { return seen->received.size() > 1'000; }, 1s);
  world.net.reset_connections(0, 1);
  world.sim.run_for(1s);
  EXPECT_EQ(seen->read_end, asio::error::connection_reset);
  EXPECT_EQ(seen->write_end, asio::error::connection_reset);
}

TEST(SimNet, PowerCutOfTheReader_IsSilentUntilTheWriterGivesUp) {
  World world;
  world.net.faults.rst_on_crash = 0;
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
  world.sim.run_for(1ms);
  const std::string text = pattern(1'000'000);
  world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, text, seen); });
  world.sim.run_until([&] { return seen->received.size() > 1'000; }, 1s);
  world.machine(0).kill(Machine::Kill::power_cut);
  world.sim.run_for(10s);
  EXPECT_FALSE(seen->write_end) << "silence";
  world.sim.run_for(10s);
  EXPECT_EQ(seen->write_end, asio::error::timed_out);
}

TEST(SimNet, PowerCutAndReboot_AnswersOldConnectionsWithAReset) {
  World world;
  world.net.faults.rst_on_crash = 0;
  world.net.faults.window_bytes = 1 << 20;
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
  world.sim.run_for(1ms);
  const auto drip = [](Env& env, SeenPtr seen) -> Task<void> {
    auto stream = co_await connect(env, Endpoint{"n0", 80});
    for (;;) {
      const error_code ec = co_await write_all(*stream, buffers_of("drop"));
      if (ec) {
        seen->write_end = ec;
        break;
      }
      co_await sleep_for(env, 500ms);
    }
  };
  world.spawn(1, [&](Env& env) { return drip(env, seen); });
  world.sim.run_for(2s);
  EXPECT_EQ(seen->accepted, 1);
  world.machine(0).kill(Machine::Kill::power_cut);
  world.sim.run_for(3s);
  EXPECT_FALSE(seen->write_end);
  world.boot(0);
  world.sim.run_for(2s);
  EXPECT_EQ(seen->write_end, asio::error::connection_reset);
}

TEST(SimNet, ProcessExit_ClosesConnectionsAtOnceAndRefusesNewOnes) {
  World world;
  auto seen = std::make_shared<Seen>(), refused = std::make_shared<Seen>();
  world.spawn(1, [&](Env& env) { return serve_one(env, seen); });
  world.sim.run_for(1ms);
  world.spawn(0, [&](Env& env) { return send_text(env, {"n1", 80}, "hello", seen, 1h); });
  world.sim.run_for(1s);
  EXPECT_EQ(seen->received, "hello");
  world.machine(0).kill(Machine::Kill::process_exit);
  world.sim.run_for(1s);
  EXPECT_EQ(seen->read_end, asio::error::eof);
  world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, "x", refused); });
  world.sim.run_for(1s);
  EXPECT_EQ(refused->connect_end, asio::error::connection_refused);
}

TEST(SimNet, IdleConnectionToASilentlyDeadPeer_HearsNothing) {
  World world;
  world.net.faults.rst_on_crash = 0;
  auto seen = std::make_shared<Seen>();
  world.spawn(1, [&](Env& env) { return serve_one(env, seen); });
  world.sim.run_for(1ms);
  world.spawn(0, [&](Env& env) { return send_text(env, {"n1", 80}, "hello", seen, 1h); });
  world.sim.run_for(1s);
  world.machine(0).kill(Machine::Kill::power_cut);
  world.sim.run_for(600s);
  EXPECT_FALSE(seen->done) << "only a time-out of the program can free this session";
}

// ---- back-pressure, half-close, cancellation ---------------------------------------------------

TEST(SimNet, SlowReader_HoldsTheWriterToTheWindow) {
  World world;
  auto seen = std::make_shared<Seen>();
  const auto lazy = [](Env& env, SeenPtr seen) -> Task<void> {
    auto listener = env.net.listen(Endpoint{"", 80});
    auto owned = std::move(listener.value());
    auto stream = co_await accept(*owned);
    co_await sleep_for(env, 10s);
    co_await receive_all(env, std::move(stream), seen);
  };
  world.spawn(0, [&](Env& env) { return lazy(env, seen); });
  world.sim.run_for(1ms);
  const std::string text = pattern(300'000);
  world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, text, seen); });
  world.sim.run_for(5s);
  EXPECT_EQ(seen->written, 64u * 1024);
  EXPECT_GT(world.net.stats.full_windows, 0u);
  world.sim.run_for(20s);
  EXPECT_EQ(seen->received, text);
}

TEST(SimNet, SlowLink_TakesItsTime) {
  World world;
  Link slow;
  slow.bytes_per_second = 100'000;
  world.net.set_link(1, 0, slow);
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
  world.sim.run_for(1ms);
  const std::string text = pattern(500'000);
  world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, text, seen); });
  ASSERT_TRUE(world.sim.run_until([&] { return seen->done; }, 60s));
  EXPECT_EQ(seen->received, text);
  EXPECT_GE(seen->ended, 5s);
  EXPECT_LT(seen->ended, 7s);
}

Task<void> half_close_client(Env& env, SeenPtr seen) {
  auto stream = co_await connect(env, Endpoint{"n0", 80});
  const std::string question = pattern(5'000);
  (void)co_await write_all(*stream, buffers_of(question));
  stream->shutdown_write();
  const error_code after = co_await write_all(*stream, buffers_of("more"));
  seen->write_end = after;
  co_await receive_all(env, std::move(stream), seen);
}

Task<void> half_close_server(Env& env, SeenPtr seen) {
  auto listener = env.net.listen(Endpoint{"", 80});
  auto owned = std::move(listener.value());
  auto stream = co_await accept(*owned);
  std::string question;
  std::array<char, 1'000> buffer;
  for (;;) {
    auto [ec, n] = co_await read_some(*stream, asio::buffer(buffer));
    if (ec) {
      EXPECT_EQ(ec, asio::error::eof);
      break;
    }
    question.append(buffer.data(), n);
  }
  EXPECT_EQ(question, pattern(5'000));
  (void)co_await write_all(*stream, buffers_of("answer"));
  co_await sleep_for(env, 1s);
}

TEST(SimNet, HalfClose_TellsTheEndAndStillReads) {
  World world;
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return half_close_server(env, seen); });
  world.sim.run_for(1ms);
  world.spawn(1, [&](Env& env) { return half_close_client(env, seen); });
  ASSERT_TRUE(world.sim.run_until([&] { return seen->done; }, 10s));
  EXPECT_EQ(seen->write_end, asio::error::broken_pipe);
  EXPECT_EQ(seen->received, "answer");
  EXPECT_EQ(seen->read_end, asio::error::eof);
}

TEST(SimNet, CloseWithUnreadBytes_ResetsThePeer) {
  World world;
  auto seen = std::make_shared<Seen>();
  const auto rude = [](Env& env) -> Task<void> {
    auto listener = env.net.listen(Endpoint{"", 80});
    auto owned = std::move(listener.value());
    auto stream = co_await accept(*owned);
    co_await sleep_for(env, 1s);
    stream->close();
  };
  const auto talk = [](Env& env, SeenPtr seen) -> Task<void> {
    auto stream = co_await connect(env, Endpoint{"n0", 80});
    (void)co_await write_all(*stream, buffers_of("unread"));
    co_await receive_all(env, std::move(stream), seen);
  };
  world.spawn(0, [&](Env& env) { return rude(env); });
  world.sim.run_for(1ms);
  world.spawn(1, [&](Env& env) { return talk(env, seen); });
  ASSERT_TRUE(world.sim.run_until([&] { return seen->done; }, 10s));
  EXPECT_EQ(seen->read_end, asio::error::connection_reset);
}

Task<void> closing_listener(Env& env, SeenPtr seen) {
  auto listener = env.net.listen(Endpoint{"", 80});
  auto owned = std::make_shared<std::unique_ptr<Listener>>(std::move(listener.value()));
  TaskGroup group(env);
  const auto acceptor = [](std::shared_ptr<std::unique_ptr<Listener>> owned,
                           SeenPtr seen) -> Task<void> {
    try {
      (void)co_await accept(**owned);
    } catch (const boost::system::system_error& e) {
      seen->accept_end = e.code();
    }
  };
  group.spawn("accept", acceptor(owned, seen));
  co_await sleep_for(env, 1s);
  owned->reset();
  co_await sleep_for(env, 1ms);
  EXPECT_EQ(seen->accept_end, asio::error::operation_aborted);
  seen->done = true;
  co_await group.stop();
}

TEST(SimNet, ListenerThatCloses_CompletesItsAccept) {
  World world;
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return closing_listener(env, seen); });
  world.sim.run_for(5s);
  EXPECT_TRUE(seen->done);
}

Task<void> cancels_everything(Env& env, SeenPtr seen) {
  auto listener = env.net.listen(Endpoint{"", 80});
  auto owned = std::move(listener.value());
  auto accepting = accept(*owned);
  EXPECT_FALSE((co_await with_timeout(env, 1s, std::move(accepting))).has_value());
  auto connecting = connect(env, Endpoint{"n1", 80});  // blocked: hangs
  EXPECT_FALSE((co_await with_timeout(env, 1s, std::move(connecting))).has_value());
  auto mine = connect(env, Endpoint{"localhost", 80});
  auto stream = co_await std::move(mine);
  auto theirs = co_await accept(*owned);
  std::array<char, 10> buffer;
  auto reading = read_some(*stream, asio::buffer(buffer));
  auto read = co_await with_timeout(env, 1s, std::move(reading));
  EXPECT_TRUE(read.has_value()) << "it completes with an error";
  if (read) {
    EXPECT_EQ(std::get<0>(*read), asio::error::operation_aborted);
  }
  std::string big(1'000'000, 'x');
  auto writing = write_all(*stream, buffers_of(big));
  (void)co_await with_timeout(env, 1s, std::move(writing));
  stream->close();
  seen->done = true;
}

TEST(SimNet, AcceptConnectReadAndWrite_CanBeCancelled) {
  World world;
  world.net.block(0, 1);
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return cancels_everything(env, seen); });
  ASSERT_TRUE(world.sim.run_until([&] { return seen->done; }, 10s));
  EXPECT_LT(world.sim.now(), 5s);
}

Task<void> accept_forever(Env& env, SeenPtr seen) {
  auto listener = env.net.listen(Endpoint{"", 80});
  auto owned = std::move(listener.value());
  std::vector<std::unique_ptr<Stream>> streams;
  for (;;) {
    streams.push_back(co_await accept(*owned));
    ++seen->accepted;
  }
}

TEST(SimNet, ConnectCancelledAfterThePeerAccepted_LeavesNoHalfOpenStream) {
  World world;
  world.net.link.latency_spread = 0ms;
  world.net.link.latency_min = 100ms;
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return serve_one(env, seen); });
  world.sim.run_for(1ms);
  const auto impatient = [](Env& env) -> Task<void> {
    auto connecting = connect(env, Endpoint{"n0", 80});
    auto stream = co_await with_timeout(env, 150ms, std::move(connecting));
    EXPECT_FALSE(stream.has_value());
  };
  world.spawn(1, [&](Env& env) { return impatient(env); });
  world.sim.run_for(10s);
  EXPECT_EQ(seen->accepted, 1);
  EXPECT_EQ(seen->read_end, asio::error::connection_reset);
}

TEST(SimNet, PausedServer_ItsKernelAcceptsUpToTheBacklog) {
  World world;
  world.net.faults.backlog = 3;
  auto seen = std::make_shared<Seen>();
  world.spawn(0, [&](Env& env) { return accept_forever(env, seen); });
  world.sim.run_for(1ms);
  world.machine(0).pause();
  std::vector<SeenPtr> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_shared<Seen>());
    world.spawn(1, [&](Env& env) { return send_text(env, {"n0", 80}, "hi", clients.back(), 1h); });
    world.sim.run_for(100ms);
  }
  world.sim.run_for(5s);
  int connected = 0;
  for (const auto& client : clients) connected += client->written == 2;
  EXPECT_EQ(connected, 4) << "one to the waiting accept, three in the backlog";
  EXPECT_EQ(seen->accepted, 0);
  world.machine(0).resume();
  world.sim.run_for(20s);
  EXPECT_EQ(seen->accepted, 6);
}

}  // namespace
}  // namespace narad::sim

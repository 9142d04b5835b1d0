// Any bytes as what the called node says: in the place of its hello, of its proof, or of its
// answer. Holds: no crash, the call ends with a documented outcome, and it is `unavailable` if and
// only if the request was not sent.
#include "internal/peer/test_party.h"

namespace narad::peer::fuzzing {
namespace {

Task<void> ask(Peers* peers, std::optional<Result<http::Response>>* out) {
  Call call(http::Method::post, "/peer/v1/raft", "marked body");
  out->emplace(co_await peers->call("n2", Lane::raft, std::move(call), std::chrono::seconds(8)));
}

Task<void> take(Listener* listener, std::unique_ptr<Stream>* stream) {
  *stream = co_await accept(*listener);
}

}  // namespace
}  // namespace narad::peer::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  using namespace narad::peer;
  using namespace narad::peer::fuzzing;
  if (size < 2) return 0;
  const int stage = data[0] % 3;
  const std::size_t piece = data[1] == 0 ? size : data[1];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);

  http::TestWorld world;
  Party self("n1");
  PeersOptions options;
  options.insecure = true;
  options.lanes[0].answer_bytes_max = 5000;
  Peers peers(world.env, options, self, self);
  TaskGroup group(world.env);
  auto listener = world.env.net.listen(Endpoint{"", kPort});
  std::unique_ptr<Stream> server;
  std::optional<Result<http::Response>> outcome;
  group.spawn("take", take(listener.value().get(), &server));
  group.spawn("ask", ask(&peers, &outcome));
  world.poll();
  auto& called = *world.last_accepted;
  const std::string caller_hello = called.take();
  bool sent = false;
  if (stage >= 1) {
    const std::string hello = hello_of("n2", 0);
    called.send(hello);
    world.poll();
    check(called.take() == proof_of(wire::ProofRole::caller, caller_hello, hello));
    if (stage == 2) {
      called.send(proof_of(wire::ProofRole::called, caller_hello, hello));
      world.poll();
      sent = called.take().find("marked body") != std::string::npos;
      check(sent);
    }
  }
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    called.send(bytes.substr(at, piece));
    world.poll();
  }
  if (!sent) check(called.take().find("marked body") == std::string::npos);
  called.shutdown();
  world.run_for(std::chrono::seconds(20));
  check(outcome.has_value());
  if (*outcome) {
    check(sent && outcome->value().body.size() <= 5000);
  } else {
    check(outcome->error().code() == (sent ? Errc::unknown_outcome : Errc::unavailable));
  }
  check(world.run(peers.stop()));
  check(world.run(group.stop()));
  return 0;
}

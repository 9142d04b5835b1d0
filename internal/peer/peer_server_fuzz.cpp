// Any bytes to the cluster port: in the place of the preamble, of the proof, or of the requests
// after it. Holds: no crash, no handler runs for one that is unproven or on another lane, what is
// refused is told so in a bounded number of bytes, and the connection ends.
#include "internal/peer/test_party.h"

namespace narad::peer::fuzzing {
namespace {

struct Seen {
  bool proven = false;
  std::uint8_t lane = 0;
};

void add_routes(Server& server, Seen& seen) {
  for (Lane lane : {Lane::raft, Lane::control, Lane::data, Lane::bulk}) {
    RouteOptions options;
    options.body_bytes_max = 2000;
    server.route(
        std::string("POST /peer/v1/") + std::string(to_string(lane)), lane,
        [&seen, lane](Sender who, http::Request r) -> Task<http::Response> {
          check(seen.proven && seen.lane == static_cast<std::uint8_t>(lane));
          check(who.node_id == "n2" && r.body.size() <= 2000);
          return [](std::string body) -> Task<http::Response> {
            co_return http::json_response(200, std::move(body));
          }(std::move(r.body));
        },
        options);
  }
}

}  // namespace
}  // namespace narad::peer::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  using namespace narad::peer;
  using namespace narad::peer::fuzzing;
  if (size < 2) return 0;
  const int stage = data[0] % 3;  // how far the preamble goes before the bytes come
  const auto lane = static_cast<std::uint8_t>(data[0] / 3 % 4);
  const std::size_t piece = data[1] == 0 ? size : data[1];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);

  http::TestWorld world;
  Party self("n1");
  Seen seen;
  ServerOptions options;
  options.insecure = true;
  Server server(world.env, options, self);
  add_routes(server, seen);
  check(bool(server.listen(Endpoint{"", kPort})));
  world.poll();
  auto peer = world.dial(kPort);
  if (stage >= 1) {
    const std::string hello = hello_of("n2", lane);
    peer.send(hello);
    world.poll();
    const std::string theirs = peer.take();
    check(theirs.size() > 50);
    if (stage == 2) {
      seen.proven = true;
      seen.lane = lane;
      peer.send(proof_of(wire::ProofRole::caller, hello, theirs));
      world.poll();
      check(peer.take() == proof_of(wire::ProofRole::called, hello, theirs));
      check(server.stats().connections == 1);
    }
  }
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    peer.send(bytes.substr(at, piece));
    world.poll();
  }
  if (stage < 2)
    check(peer.take().size() <= 2 * (wire::kPreambleHeaderBytes + wire::kPreambleBodyMax));
  peer.shutdown();
  world.run_for(std::chrono::seconds(120));
  const auto stats = server.stats();
  check(stats.connections == 0 && stats.handshakes == 0 && stats.requests == 0);
  check(world.run(server.stop(Nanos(0))));
  return 0;
}

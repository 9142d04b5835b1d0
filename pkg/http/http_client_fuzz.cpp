// Any bytes as the answer to a request. Holds: no crash, the request ends, and what it says is one
// of the documented outcomes.
#include <cstdint>
#include <cstdlib>

#include "pkg/http/client.h"
#include "pkg/http/test_world.h"

namespace narad::http {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

Task<void> ask(Client& client, TestWorld& world, Method method, bool& ended) {
  ClientRequest request(method, "/");
  auto result = co_await client.request(Endpoint{"node", 80}, std::move(request),
                                        Deadline::after(world.env, std::chrono::seconds(5)));
  if (result) {
    check(result.value().status >= 0 && result.value().status <= 999);
    check(result.value().body.size() <= 5000);
  } else {
    const Errc code = result.error().code();
    check(code == Errc::unknown_outcome || code == Errc::data_loss || code == Errc::too_large);
  }
  ended = true;
}

Task<void> take(Listener& listener, std::unique_ptr<Stream>& stream) {
  stream = co_await accept(listener);
}

}  // namespace
}  // namespace narad::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  using namespace narad::http;
  if (size < 1) return 0;
  const Method method = data[0] & 1 ? Method::head : Method::get;
  const std::size_t piece = data[0] < 2 ? size : data[0] / 2;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

  TestWorld world;
  ClientOptions options;
  options.body_bytes_max = 5000;
  options.header_bytes_max = 8192;
  auto listener = world.env.net.listen(Endpoint{"", 80});
  Client client(world.env, options);
  TaskGroup group(world.env);
  bool ended = false;
  std::unique_ptr<Stream> server;
  group.spawn("take", take(*listener.value(), server));
  group.spawn("ask", ask(client, world, method, ended));
  world.poll();
  check(server != nullptr);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    world.last_accepted->send(bytes.substr(at, piece));
    world.poll();
  }
  world.last_accepted->shutdown();
  world.run_for(std::chrono::seconds(6));
  check(ended);
  client.close_idle();
  check(world.run(group.stop()));
  return 0;
}

// Any bytes, in any pieces, at a server session. The first byte steers how the rest is cut. Holds:
// no crash, no assert, every answer starts like one, the connection ends, and every request that
// reached the handler was one that a stricter reading of the same bytes allows (one Host, no two
// lengths, a target that is a path).
#include <cstdint>
#include <cstdlib>

#include "pkg/http/server.h"
#include "pkg/http/test_world.h"

namespace narad::http {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

Task<Response> handle(Request request) {
  check(request.target.starts_with('/'));
  check(request.headers.count("Host") <= 1);
  check(request.headers.count("Content-Length") <= 1);
  check(request.headers.count("Content-Length") + request.headers.count("Transfer-Encoding") <= 1);
  check(request.body.size() <= 5000);
  for (std::size_t i = 0; i < request.headers.size(); ++i) {
    const auto [name, value] = request.headers.at(i);
    check(name.find_first_of("\r\n") == std::string_view::npos);
    check(value.find_first_of("\r\n") == std::string_view::npos);
  }
  co_return json_response(200, std::move(request.body));
}

}  // namespace
}  // namespace narad::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  using namespace narad::http;
  if (size < 1) return 0;
  const std::size_t piece = data[0] == 0 ? size : data[0];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

  TestWorld world;
  ServerOptions options;
  options.header_bytes_max = 8192;
  auto admit = [](Request& r) {
    Admission admission;
    admission.body_bytes_max = 5000;
    admission.cancel_when_gone = r.target.size() % 2 == 0;
    return admission;
  };
  Server server(world.env, options, admit, [](Request r) { return handle(std::move(r)); });
  auto connection = world.connection();
  server.serve(std::move(connection.near));
  std::string answers;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    connection.far.send(bytes.substr(at, piece));
    world.poll();
    answers += connection.far.take();
  }
  connection.far.shutdown();
  world.poll();
  answers += connection.far.take();
  check(answers.empty() || answers.starts_with("HTTP/1.1 "));
  check(server.stats().connections == 0);
  check(server.stats().buffered_bytes == 0);
  check(world.run(server.stop(Nanos(0))));
  check(world.exit_reason.empty());
  return 0;
}

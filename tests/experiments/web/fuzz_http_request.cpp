// libFuzzer target of the requests of an HTTP client. An input is what one connection sends, and
// may contain several requests. The first byte is the size of the pieces in which it arrives.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>

#include "experiments/web/request_parser.hpp"
#include "tests/fuzz_seeds.hpp"

namespace {

using namespace troupe::experiments::web;

constexpr std::size_t kHeaderBytes = 512;
constexpr std::size_t kBodyBytes = 1024;

struct Connection {
  std::string_view left; // not yet arrived
  std::size_t piece = 1;
  std::string arrived;

  /// Returns whether the connection sent a complete request.
  bool read(RequestParser& parser) {
    boost::beast::error_code error;
    while (!parser.is_done()) {
      if (arrived.empty() || error) {
        const auto some = left.substr(0, piece);
        if (some.empty()) {
          if (parser.got_some())
            parser.put_eof(error);
          return !error && parser.is_done();
        }
        arrived += some;
        left.remove_prefix(some.size());
        if (arrived.size() > kHeaderBytes + kBodyBytes)
          return false; // as the server's buffer
      }
      arrived.erase(0,
                    parser.put(boost::asio::const_buffer(arrived.data(), arrived.size()), error));
      if (error && error != boost::beast::http::error::need_more)
        return false;
    }
    return true;
  }
};

void check_request(RequestParser& parser) {
  Request& request = parser.request();
  std::size_t bytes = request.method.size() + parser.target().size();
  for (const auto& [name, value] : request.headers)
    bytes += name.size() + value.size();
  if (bytes > kHeaderBytes || request.body.size() > kBodyBytes)
    __builtin_trap();
  if (parse_target(parser.target(), request)
      && (request.path.size() > kHeaderBytes || request.query.size() > kHeaderBytes))
    __builtin_trap();
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  const std::string get = "GET /api/runs?name=a%20b&first=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string post = "POST /v1/act HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                           "Content-Length: 22\r\n\r\n{\"observation\": [1.5]}";
  const std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
                              "3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n";
  return {"\x01" + get, "\x40" + post, "\x08" + chunked, "\xff" + get + post + chunked};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  Connection connection{.left = {reinterpret_cast<const char*>(data + 1), size - 1},
                        .piece = std::size_t{1} + data[0],
                        .arrived = {}};
  for (;;) {
    RequestParser parser(kHeaderBytes, kBodyBytes);
    parser.eager(true); // as http::async_read() does
    if (!connection.read(parser))
      return 0;
    check_request(parser);
    if (!parser.keep_alive())
      return 0;
  }
}

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "experiments/dashboard/http.hpp"

namespace troupe::experiments::dashboard {

/// Limits on what a client may use.
struct HttpLimits {
  int connections = 64;                  // more are closed at once
  std::uint32_t header_bytes = 16 << 10; // of the request line and all headers; 431
  std::uint64_t body_bytes = 256 << 10;  // 413
  int seconds = 30;                      // for a whole request, a whole answer, or between them
  int threads = 3;
};

/// HTTP/1.1 on 127.0.0.1, by Boost.Beast.
class HttpServer {
public:
  using Handler = std::function<Response(const Request&)>;

  /// Listens; port 0: at a free one. Throws std::runtime_error naming the port and the reason.
  explicit HttpServer(std::uint16_t port, const HttpLimits& limits = {});
  ~HttpServer(); // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;

  /// Once: answers from now on. `handler` is called on several threads; what it throws becomes the
  /// answer: 400 for std::invalid_argument, 500 for other exceptions.
  void start(Handler handler);

  /// Returns when no handler runs; none will.
  void stop();

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace troupe::experiments::dashboard

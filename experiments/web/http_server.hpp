#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "experiments/web/http.hpp"

namespace troupe::experiments::web {

/// Limits on what a client may use.
struct HttpLimits {
  int connections = 64;                  // more are closed at once
  std::uint32_t header_bytes = 16 << 10; // of the request line and all headers; 431
  std::uint64_t body_bytes = 256 << 10;  // 413
  int seconds = 30;                      // for a whole request, a whole answer, or between them
  int threads = 3;
};

struct HttpOptions {
  std::string address = "127.0.0.1";      // of an interface; others than loopback need TLS
  std::uint16_t port = 0;                 // 0: a free one
  std::filesystem::path certificate = {}; // PEM, with its chain; empty: no TLS
  std::filesystem::path key = {};         // PEM, of the certificate
  HttpLimits limits = {};
  std::string thread_name = "dashboard"; // at most 15 characters
};

/// HTTP/1.1, or over TLS 1.2 or later, by Boost.Beast.
class HttpServer {
public:
  using Handler = std::function<Response(const Request&)>;
  /// Called once for each request, on any thread, before the server is destroyed.
  using Reply = std::function<void(Response)>;
  /// Replies at once or later; the request is valid until then.
  using DeferringHandler = std::function<void(const Request&, Reply)>;

  /// Listens. Throws std::runtime_error naming the address and the reason, std::invalid_argument
  /// naming the option: no certificate for another interface, a file that is not one.
  explicit HttpServer(const HttpOptions& options);
  ~HttpServer(); // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  /// "http://127.0.0.1:8800", "https://…"; the host's name where it listens on all interfaces
  std::string address() const;

  /// Once: answers from now on. `handler` is called on several threads; what it throws becomes the
  /// answer: 400 for std::invalid_argument, 500 for other exceptions.
  void start(Handler handler);
  void start(DeferringHandler handler);

  /// Returns when no handler runs; none will.
  void stop();

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace troupe::experiments::web

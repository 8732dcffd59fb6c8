#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "experiments/web/http.hpp"

namespace troupe::experiments::web {

/// Limits on the resources that clients may use.
struct HttpLimits {
  /// A further connection replaces the one whose client has been silent longest; if the server is
  /// answering all of them, it is closed at once.
  int connections = 64;
  std::uint32_t header_bytes = 16 << 10; // request line and all headers; beyond: 431
  std::uint64_t body_bytes = 256 << 10;  // beyond: 413
  int seconds = 30;                      // for a request, an answer, or the time between
  int threads = 3;
};

struct HttpOptions {
  std::string address = "127.0.0.1";      // address of an interface; all but loopback need TLS
  std::uint16_t port = 0;                 // 0: any free port
  std::filesystem::path certificate = {}; // PEM file with the certificate chain; empty: no TLS
  std::filesystem::path key = {};         // PEM file with the certificate's key
  HttpLimits limits = {};
  std::string thread_name = "dashboard"; // at most 15 characters
};

/// A server for HTTP/1.1, with TLS 1.2 or later if configured, built on Boost.Beast.
class HttpServer {
public:
  using Handler = std::function<Response(const Request&)>;
  /// Must be called once for each request, on any thread, before the server is destroyed.
  using Reply = std::function<void(Response)>;
  /// Replies immediately or later. The request is valid until the reply.
  using DeferringHandler = std::function<void(const Request&, Reply)>;

  /// Starts to listen. Throws std::runtime_error that names the address and the reason, and
  /// std::invalid_argument that names the option if an interface other than loopback has no
  /// certificate or a file is invalid.
  explicit HttpServer(const HttpOptions& options);
  ~HttpServer(); // calls stop()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  /// "http://127.0.0.1:8800" or "https://…"; uses the host's name if it listens on all interfaces
  std::string address() const;

  /// Starts to answer requests; call it once. `handler` is called on several threads. Its
  /// exceptions become answers: 400 for std::invalid_argument, 500 for all others.
  void start(Handler handler);
  void start(DeferringHandler handler);

  /// Calls `task` on one of the server's threads, unless the server stops before. It must not
  /// throw.
  void post(std::function<void()> task);

  /// Stops the server. Once it returns, no handler is running or will be called.
  void stop();

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace troupe::experiments::web

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "experiments/web/http_server.hpp"
#include "tests/eventually.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments::web;

namespace {

/// A connection that sends any bytes, valid or not.
class Client {
public:
  explicit Client(std::uint16_t port) : handle_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{.sin_family = AF_INET,
                        .sin_port = htons(port),
                        .sin_addr = {htonl(INADDR_LOOPBACK)},
                        .sin_zero = {}};
    REQUIRE(::connect(handle_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~Client() { ::close(handle_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(const std::string& text) const {
    ::send(handle_, text.data(), text.size(), MSG_NOSIGNAL);
  }

  /// Reads until the server closes the connection or `end` has arrived.
  std::string receive(const std::string& end = "") {
    std::string text;
    char bytes[4096];
    while (end.empty() || !has(text, end)) {
      pollfd ready{handle_, POLLIN, 0};
      REQUIRE(::poll(&ready, 1, 20'000) == 1);
      const ssize_t count = ::recv(handle_, bytes, sizeof bytes, 0);
      if (count <= 0) {
        break;
      }
      text.append(bytes, static_cast<std::size_t>(count));
    }
    return text;
  }

private:
  int handle_;
};

Response echo(const Request& request) {
  if (request.path == "/mistake") {
    throw std::invalid_argument("no such run");
  }
  if (request.path == "/failure") {
    throw std::runtime_error("the disk is gone");
  }
  return {.type = "text/plain",
          .body = request.method + " " + request.path + " " + request.parameter("a b") + " "
                  + request.header("x-one") + request.body};
}

std::string ask(const HttpServer& server, const std::string& text) {
  Client client(server.port());
  client.send(text);
  return client.receive();
}

} // namespace

TEST_CASE("Requests are decoded and answered in order on one connection, and responses forbid "
          "caching and framing") {
  HttpServer server({});
  server.start(echo);
  Client client(server.port());
  client.send("GET /x%20y?a+b=1%262 HTTP/1.1\r\nHost: h\r\nX-One: two\r\n\r\n");
  const std::string first = client.receive("two");
  CHECK(has(first, "HTTP/1.1 200"));
  CHECK(has(first, "GET /x y 1&2 two"));
  CHECK(has(first, "Cache-Control: no-store"));
  CHECK(has(first, "frame-ancestors 'none'"));
  CHECK(has(first, "X-Content-Type-Options: nosniff"));
  client.send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody");
  CHECK(has(client.receive(), "POST /p  body"));
  CHECK(has(ask(server, "GET /mistake HTTP/1.1\r\nConnection: close\r\n\r\n"), "400"));
  CHECK(has(ask(server, "GET /failure HTTP/1.1\r\nConnection: close\r\n\r\n"), "the disk is gone"));
}

TEST_CASE("A malformed or oversized request gets an error, and the server keeps serving") {
  HttpServer server({.limits = {.header_bytes = 2000, .body_bytes = 1000}});
  server.start(echo);
  CHECK(has(ask(server, "\x16\x03\x01 TLS?\r\n\r\n"), "400"));
  CHECK(has(ask(server, "GET /%4 HTTP/1.1\r\nConnection: close\r\n\r\n"), "malformed"));
  CHECK(has(ask(server, "GET / HTTP/1.1\r\nX: " + std::string(3000, 'x') + "\r\n\r\n"), "431"));
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 500; ++i) {
    many += "X" + std::to_string(i) + ": y\r\n";
  }
  CHECK(has(ask(server, many + "\r\n"), "431"));
  CHECK(has(ask(server, "POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n"), "413"));
  CHECK(has(ask(server, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n"
                            + std::string(0xfff, 'x') + "\r\n"),
            "413"));
  CHECK(has(ask(server, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), "200")); // still serves
}

TEST_CASE("A client that waits for it gets 100 Continue before it sends a body of allowed size") {
  HttpServer server({.limits = {.body_bytes = 1000}});
  server.start(echo);
  Client client(server.port());
  client.send("POST /p HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 4\r\n\r\n");
  CHECK(client.receive("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  CHECK(client.receive("body").starts_with("HTTP/1.1 200"));
  client.send("POST /p HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n");
  CHECK(client.receive().starts_with("HTTP/1.1 413"));
}

TEST_CASE("A client that does not finish its request in time is disconnected") {
  HttpServer server({.limits = {.seconds = 1}});
  server.start(echo);
  CHECK(ask(server, "GET / HTTP/1.1\r\nX-Slow: ") == "");
}

TEST_CASE("A connection above the limit takes the place of the one that has been silent longest") {
  HttpServer server({.limits = {.connections = 2}});
  server.start(echo);
  Client silent(server.port()), slow(server.port());
  slow.send("GET / HTTP/1.1\r\nX-Slow: ");
  std::vector<std::unique_ptr<Client>> kept;
  const auto is_served = [&] { // a connection that comes before others have ended is closed
    kept.push_back(std::make_unique<Client>(server.port()));
    kept.back()->send("GET / HTTP/1.1\r\n\r\n");
    return has(kept.back()->receive("GET /"), "200");
  };
  for (int i = 0; i < 8; ++i) {
    CHECK(testing::comes_true(is_served));
  }
  CHECK_EQ(silent.receive(), "");
  CHECK_EQ(slow.receive(), "");
}

TEST_CASE("While all connections are being answered, further ones are closed at once") {
  std::mutex mutex;
  std::vector<HttpServer::Reply> replies;
  HttpServer server({.limits = {.connections = 2}});
  server.start([&](const Request&, HttpServer::Reply reply) {
    const std::lock_guard lock(mutex);
    replies.push_back(std::move(reply));
  });
  Client one(server.port()), two(server.port());
  for (const Client* client : {&one, &two}) {
    client->send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  }
  REQUIRE(testing::comes_true([&] {
    const std::lock_guard lock(mutex);
    return replies.size() == 2;
  }));
  CHECK_EQ(ask(server, ""), "");
  for (const HttpServer::Reply& reply : replies) {
    reply({.type = "text/plain", .body = "done"});
  }
  CHECK(has(one.receive(), "done"));
  CHECK(has(two.receive(), "done"));
  replies.clear();
}

TEST_CASE("A port in use is reported with a remedy") {
  const HttpServer server({});
  const std::string error = error_of([&] { const HttpServer other({.port = server.port()}); });
  CHECK(has(error, std::to_string(server.port())));
  CHECK(has(error, "another --port"));
}

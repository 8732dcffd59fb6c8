#pragma once

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "replay/objects/store_options.hpp"

namespace troupe::replay {

/// Answers each connection with the next of the given responses, byte for byte, and closes it.
class Scripted {
public:
  explicit Scripted(std::vector<std::string> answers)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(socket_, 8) == 0);
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, answers = std::move(answers)] { serve(answers); });
  }
  ~Scripted() {
    ::shutdown(socket_, SHUT_RDWR); // makes accept() return
    thread_.join();
    ::close(socket_);
  }
  Scripted(const Scripted&) = delete;
  Scripted& operator=(const Scripted&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  StoreOptions options() const {
    return {.endpoint = url(),
            .keys = {.access_key = "key", .secret_key = "hidden"},
            .attempts = 3,
            .first_pause = std::chrono::milliseconds(1),
            .request_deadline = std::chrono::seconds(1),
            .slowest_rate = std::size_t{1} << 30};
  }
  /// The requests received. Ends the server first.
  const std::vector<std::string>& requests() {
    ::shutdown(socket_, SHUT_RDWR);
    if (thread_.joinable())
      thread_.join();
    thread_ = std::jthread([] {});
    return requests_;
  }

private:
  void serve(const std::vector<std::string>& answers) {
    for (const std::string& answer : answers) {
      const int peer = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0)
        return;
      std::string request;
      std::array<char, 4096> bytes{};
      while (request.find("\r\n\r\n") == request.npos) {
        const ssize_t got = ::read(peer, bytes.data(), bytes.size());
        if (got <= 0)
          break;
        request.append(bytes.data(), static_cast<std::size_t>(got));
      }
      requests_.push_back(request);
      if (answer == "silence")
        while (::read(peer, bytes.data(), bytes.size()) > 0) {
        }
      else
        (void)!::write(peer, answer.data(), answer.size());
      ::close(peer);
    }
  }

  int socket_;
  int port_ = 0;
  std::vector<std::string> requests_;
  std::jthread thread_;
};

inline std::string answer(const std::string& status, const std::string& body,
                          const std::string& header = "") {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n"
         + header + "\r\n" + body;
}

} // namespace troupe::replay

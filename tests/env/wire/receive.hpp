#pragma once

#include <doctest/doctest.h>

#include "env/wire/socket.hpp"

namespace troupe::env::wire {

/// The next message; fails the test if none comes.
inline Message receive(Socket& socket) {
  Message message;
  while (socket.try_receive(message) != Socket::Received::message)
    REQUIRE(socket.wait(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  return message;
}

} // namespace troupe::env::wire

#pragma once

#include <stdexcept>
#include <string>

#include <zmq.h>

/// Wrappers of ZeroMQ's calls, for this folder only.
namespace troupe::env::wire::zeromq {

[[noreturn]] inline void fail(const std::string& what, const std::string& way_out = "") {
  throw std::runtime_error(what + ": " + zmq_strerror(zmq_errno()) + way_out);
}

inline void set(void* socket, int option, const std::string& text) {
  if (zmq_setsockopt(socket, option, text.data(), text.size()) != 0)
    fail("socket option " + std::to_string(option));
}

template <typename T>
void set(void* socket, int option, T value) {
  if (zmq_setsockopt(socket, option, &value, sizeof value) != 0)
    fail("socket option " + std::to_string(option));
}

} // namespace troupe::env::wire::zeromq

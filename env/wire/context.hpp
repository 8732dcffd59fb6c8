#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace troupe::env::wire {

using Deadline = std::chrono::steady_clock::time_point;

/// Owns ZeroMQ's context (its I/O threads). One per process, made by main and handed down; outlives
/// every socket made from it. Any thread.
class Context {
public:
  explicit Context(int io_threads = 1);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void* handle() const { return handle_; } // for Socket

private:
  void* handle_ = nullptr;
};

std::string zeromq_version(); // of the library that is loaded, "4.3.4"
bool zeromq_encrypts();       // it was built with CURVE

} // namespace troupe::env::wire

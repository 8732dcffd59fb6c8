#pragma once

#include <chrono>
#include <memory>

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

} // namespace troupe::env::wire

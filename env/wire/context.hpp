#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::env::wire {

using Deadline = std::chrono::steady_clock::time_point;

class ZapHandler;
struct DeploymentKeys;

/// Owns ZeroMQ's context, with its I/O threads. There is one per process; main() creates it, and it
/// outlives every socket created from it. Any thread may use it.
///
/// If the context has keys, its sockets encrypt every connection off the loopback interface, except
/// sockets with their own keys, which always use those.
class Context {
public:
  explicit Context(int io_threads = 1, std::shared_ptr<const DeploymentKeys> keys = nullptr);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void* handle() const { return handle_; } // for Socket
  ZapHandler& zap_handler();               // for Socket; created on the first call
  const std::shared_ptr<const DeploymentKeys>& keys() const { return keys_; } // may be null

private:
  std::shared_ptr<const DeploymentKeys> keys_;
  void* handle_ = nullptr;
  std::mutex mutex_; // guards zap_handler_
  std::unique_ptr<ZapHandler> zap_handler_;
};

std::string zeromq_version(); // of the loaded library, for example "4.3.4"
bool zeromq_encrypts();       // whether the library was built with CURVE

} // namespace troupe::env::wire

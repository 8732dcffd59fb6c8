#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::env::wire {

using Deadline = std::chrono::steady_clock::time_point;

class ZapHandler;
struct DeploymentKeys;

/// Owns ZeroMQ's context (its I/O threads). One per process, created by main; outlives every socket
/// created from it. Any thread.
///
/// With `keys` every socket that binds or connects off the loopback interface encrypts with them,
/// unless the socket has keys.
class Context {
public:
  explicit Context(int io_threads = 1, std::shared_ptr<const DeploymentKeys> keys = nullptr);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void* handle() const { return handle_; } // for Socket
  ZapHandler& zap_handler();               // for Socket; made at the first call
  const std::shared_ptr<const DeploymentKeys>& keys() const { return keys_; } // may be null

private:
  std::shared_ptr<const DeploymentKeys> keys_;
  void* handle_ = nullptr;
  std::mutex mutex_; // of zap_handler_
  std::unique_ptr<ZapHandler> zap_handler_;
};

std::string zeromq_version(); // of the library that is loaded, "4.3.4"
bool zeromq_encrypts();       // it was built with CURVE

} // namespace troupe::env::wire

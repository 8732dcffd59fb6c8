#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::env::wire {

using Deadline = std::chrono::steady_clock::time_point;

class Gatekeeper;
struct DeploymentKeys;

/// Owns ZeroMQ's context (its I/O threads). One per process, made by main and handed down; outlives
/// every socket made from it. Any thread.
///
/// With `keys` every socket that binds or connects off the loopback interface encrypts with them,
/// unless it has keys of its own.
class Context {
public:
  explicit Context(int io_threads = 1, std::shared_ptr<const DeploymentKeys> keys = nullptr);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void* handle() const { return handle_; } // for Socket
  Gatekeeper& gatekeeper();                // for Socket; made at the first call
  const std::shared_ptr<const DeploymentKeys>& keys() const { return keys_; } // may be null

private:
  std::shared_ptr<const DeploymentKeys> keys_;
  void* handle_ = nullptr;
  std::mutex mutex_; // of gatekeeper_
  std::unique_ptr<Gatekeeper> gatekeeper_;
};

std::string zeromq_version(); // of the library that is loaded, "4.3.4"
bool zeromq_encrypts();       // it was built with CURVE

} // namespace troupe::env::wire

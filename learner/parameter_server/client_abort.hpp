#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "env/sockets/descriptor.hpp"

namespace troupe::learner {

/// Ends the waits of the clients of parameter servers that have it, for example because another
/// replica of their process has failed. Any thread may call it.
class ClientAbort {
public:
  ClientAbort(); // throws std::runtime_error if the process has no free descriptor
  void abort(const std::string& reason);
  void check() const; // throws std::runtime_error with the reason after abort()
  int descriptor() const { return wake_.number(); } // readable after abort()

private:
  env::wire::Descriptor wake_;
  mutable std::mutex mutex_; // guards reason_
  std::optional<std::string> reason_;
};

} // namespace troupe::learner

#include "learner/parameter_server/client_abort.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include <sys/eventfd.h>
#include <unistd.h>

namespace troupe::learner {

ClientAbort::ClientAbort() : wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!wake_)
    throw std::runtime_error(std::string("eventfd: ") + std::strerror(errno));
}

void ClientAbort::abort(const std::string& reason) {
  {
    const std::scoped_lock lock(mutex_);
    reason_ = reason;
  }
  const std::uint64_t one = 1; // never read, so that the descriptor remains readable
  [[maybe_unused]] const auto written = ::write(wake_.number(), &one, sizeof one);
}

void ClientAbort::check() const {
  const std::scoped_lock lock(mutex_);
  if (reason_)
    throw std::runtime_error("parameter server: another replica failed: " + *reason_);
}

} // namespace troupe::learner

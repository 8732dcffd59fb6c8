#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include <sys/eventfd.h>

#include "env/sockets/descriptor.hpp"

namespace troupe::env::wire {

/// Ends another thread's wait for descriptors, such as Socket::wait(): its own descriptor (eventfd)
/// is readable from ring() to silence(). Any thread may call the functions.
class Bell {
public:
  /// Throws std::runtime_error if the process has no descriptors left.
  Bell() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!descriptor_)
      throw std::runtime_error(std::string("cannot open an eventfd: ") + std::strerror(errno)
                               + "; raise the limit of open files (ulimit -n)");
  }

  void ring() const {
    // Fails only after 2^64 rings.
    [[maybe_unused]] const int status = ::eventfd_write(descriptor_.number(), 1);
  }
  void silence() const {
    eventfd_t rings = 0;
    [[maybe_unused]] const int status = ::eventfd_read(descriptor_.number(), &rings);
  }
  int descriptor() const { return descriptor_.number(); }

private:
  Descriptor descriptor_;
};

} // namespace troupe::env::wire

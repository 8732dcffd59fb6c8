#include "env/remote/wake.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include <sys/eventfd.h>
#include <unistd.h>

namespace troupe::env::remote {

Wake::Wake() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0)
    throw std::runtime_error(std::string("cannot open an eventfd: ") + std::strerror(errno)
                             + "; raise the limit of open files (ulimit -n)");
}

Wake::~Wake() {
  close(descriptor_);
}

void Wake::ring() {
  const std::uint64_t one = 1;
  // Fails only after 2^64 rings.
  [[maybe_unused]] const auto written = write(descriptor_, &one, sizeof one);
}

} // namespace troupe::env::remote

#pragma once

#include <cstddef>
#include <fstream>

#include <unistd.h>

namespace troupe {

/// Resident memory of this process in bytes.
inline std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace troupe

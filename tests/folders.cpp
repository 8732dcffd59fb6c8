#include "tests/folders.hpp"

namespace troupe {

std::string in_source(const std::string& path) {
  return path.empty() ? TROUPE_SOURCE_DIR : TROUPE_SOURCE_DIR "/" + path;
}

std::string in_build(const std::string& path) {
  return path.empty() ? TROUPE_BINARY_DIR : TROUPE_BINARY_DIR "/" + path;
}

} // namespace troupe

#pragma once

#include <cstdint>
#include <string>

namespace troupe::replay {

inline constexpr const char* kManifestName = "manifest"; // in a checkpoint's folder

inline std::string segment_name(std::uint64_t id) {
  return "segment-" + std::to_string(id);
}

} // namespace troupe::replay

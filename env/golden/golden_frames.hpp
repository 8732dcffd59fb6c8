#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::env {

/// Recorded pictures of a trajectory, uint8 [height, width, 3] each.
struct GoldenFrames {
  std::map<int, std::size_t> index; // control step -> index of its picture in `bytes`
  std::vector<std::byte> bytes;
  int height = 0;
  int width = 0;
  int camera = 0;

  /// The picture of a control step; empty if there is none.
  std::span<const std::uint8_t> at(int control_step) const;
};

/// Reads <folder>/frames_<task>.npz. Returns no frames if there is no such file. Throws
/// std::runtime_error if it is malformed.
GoldenFrames read_golden_frames(const std::string& folder, const std::string& task);

} // namespace troupe::env

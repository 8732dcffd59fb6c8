#include "env/golden/golden_frames.hpp"

#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "env/golden/golden_replay.hpp"

namespace troupe::env {

namespace {

int small_number(double value, const std::string& source) {
  if (!(value >= 0 && value <= 1e6 && value == std::floor(value)))
    throw std::runtime_error(source + ": " + std::to_string(value)
                             + " is not the number of a step or camera");
  return static_cast<int>(value);
}

} // namespace

std::span<const std::uint8_t> GoldenFrames::at(int control_step) const {
  const auto found = index.find(control_step);
  if (found == index.end())
    return {};
  const auto size = static_cast<std::size_t>(height * width * 3);
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()) + found->second * size, size};
}

GoldenFrames read_golden_frames(const std::string& folder, const std::string& task) {
  const std::string source = (std::filesystem::path(folder) / ("frames_" + task + ".npz")).string();
  GoldenFrames frames;
  if (!std::filesystem::exists(source))
    return frames;
  RecordedArrays arrays = read_npz(source);
  const RecordedTable steps = recorded_table(arrays, "steps", 1, source);
  const RecordedTable camera = recorded_table(arrays, "camera", 1, source);
  NpyArray& pixels = arrays["frames"];
  const auto& shape = pixels.shape;
  if (pixels.type != "|u1" || shape.size() != 4 || shape[3] != 3 || camera.rows != 1
      || shape[0] != static_cast<std::int64_t>(steps.rows) || shape[1] < 1 || shape[1] > 4096
      || shape[2] < 1 || shape[2] > 4096)
    throw std::runtime_error(source
                             + ": frames must be uint8 [n, height, width, 3] with n steps"
                               " and one camera");
  frames.height = static_cast<int>(shape[1]);
  frames.width = static_cast<int>(shape[2]);
  frames.camera = small_number(camera.values[0], source);
  for (std::size_t i = 0; i < steps.rows; ++i)
    frames.index[small_number(steps.values[i], source)] = i;
  frames.bytes = std::move(pixels.bytes);
  return frames;
}

} // namespace troupe::env

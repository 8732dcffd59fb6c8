#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "env/spec.hpp"

namespace troupe::learner::data {

/// Gymnasium's spaces as Minari's metadata.json describes them: JSON in a string, with Python's
/// names of what is not finite, which become null. Throws DataError naming `source` if the metadata
/// has no such space.
nlohmann::json space_of(const nlohmann::json& metadata, const char* name,
                        const std::filesystem::path& source);

/// How actions of a space become numbers that agents choose.
struct Actions {
  std::vector<std::int64_t> choices; // of each number; 0: continuous
  std::vector<double> low, high;     // of continuous ones
  std::vector<double> start;         // of choices

  float stored(double value, std::size_t i) const {
    if (choices[i] > 0)
      return static_cast<float>(value - start[i]);
    return static_cast<float>(2 * (value - low[i]) / (high[i] - low[i]) - 1);
  }
};

/// Throws std::invalid_argument if agents do not choose from such a space.
Actions actions_of(const nlohmann::json& space);

/// The one observation that agents get.
struct Seen {
  std::string path; // behind "observations"
  nlohmann::json space;
};

/// `observation`: names of a dictionary's parts, separated by '/'. Throws std::invalid_argument if
/// there is no such part, or if it is a dictionary.
Seen seen_of(nlohmann::json space, const std::string& observation);

bool is_picture(const nlohmann::json& space); // uint8 [height, width, channels]

/// What agents take of it. `jpeg`: pictures are stored as JPEG. Throws std::invalid_argument if
/// agents cannot take it.
env::ArraySpec frame_of(const Seen& seen, bool jpeg);

} // namespace troupe::learner::data

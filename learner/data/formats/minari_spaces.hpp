#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "env/spec.hpp"

namespace troupe::learner::data {

/// Returns a Gymnasium space from Minari's metadata.json, which describes it as JSON in a string.
/// Python's names for numbers that are not finite become null. Throws DataError naming `source` if
/// the metadata has no such space.
nlohmann::json space_of(const nlohmann::json& metadata, const char* name,
                        const std::filesystem::path& source);

/// How the actions of a space map to the numbers that agents choose.
struct Actions {
  std::vector<std::int64_t> choices; // per number; 0: continuous
  std::vector<double> low, high;     // of the continuous numbers
  std::vector<double> start;         // of the choices

  float stored(double value, std::size_t i) const {
    if (choices[i] > 0)
      return static_cast<float>(value - start[i]);
    return static_cast<float>(2 * (value - low[i]) / (high[i] - low[i]) - 1);
  }
};

/// Throws std::invalid_argument if agents do not support the space, or if its lists differ in
/// length.
Actions actions_of(const nlohmann::json& space);

/// The one observation that agents receive.
struct Seen {
  std::string path; // below "observations"
  nlohmann::json space;
};

/// `observation` names an entry of nested dictionaries, separated by '/'. Throws
/// std::invalid_argument if there is no such entry, or if it is a dictionary itself.
Seen seen_of(nlohmann::json space, const std::string& observation);

bool is_picture(const nlohmann::json& space); // uint8 [height, width, channels]

/// Returns the array that agents receive for it. `jpeg`: the pictures are stored as JPEG. Throws
/// std::invalid_argument if agents do not support it.
env::ArraySpec frame_of(const Seen& seen, bool jpeg);

} // namespace troupe::learner::data

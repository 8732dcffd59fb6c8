#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::experiments::play {

/// A command from the page. Positions range from -1 to 1, left to right and bottom to top of the
/// picture; distances are fractions of the picture's height.
struct Command {
  enum class Kind : std::uint8_t {
    pause,
    resume,
    step,        // plays one step, then pauses
    restart,     // begins another episode
    speed,       // plays x times as fast as simulated time
    next_camera, // see OrbitCamera::choose_next()
    turn,        // turns the camera by x to the right and y up
    shift,
    zoom,    // moves the camera closer by y
    grab,    // takes hold of the body at x, y
    pull,    // pulls that body to x, y
    release, // lets go of it
  };
  Kind kind = Kind::pause;
  double x = 0;
  double y = 0;
};

/// Parses {"commands": [{"do": "turn", "x": 0.1, "y": 0}, …]}, at most 256 of them. Throws
/// std::invalid_argument with key, value and rule.
std::vector<Command> read_commands(const std::string& json);

} // namespace troupe::experiments::play

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::experiments::play {

/// What a person at the page wants. Positions are -1 to 1 from left to right and from the bottom to
/// the top of the picture, distances are parts of its height.
struct Command {
  enum class Kind : std::uint8_t {
    pause,
    go_on,
    step,        // one, and pause
    restart,     // another episode
    speed,       // x times as fast as the simulated time
    next_camera, // see OrbitCamera::choose_next()
    turn,        // the camera, by x to the right and y up
    shift,
    zoom,    // y nearer
    grab,    // the body at x, y
    pull,    // it to x, y
    release, // it
  };
  Kind kind = Kind::pause;
  double x = 0;
  double y = 0;
};

/// Of {"commands": [{"do": "turn", "x": 0.1, "y": 0}, …]}, at most 256. Throws
/// std::invalid_argument naming key, value and rule.
std::vector<Command> read_commands(const std::string& json);

} // namespace troupe::experiments::play

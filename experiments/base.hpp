#pragma once

#include <string>

#include "experiments/parse.hpp"

namespace troupe::experiments {

/// Text format into `experiment`, laid over the file that its key `base` names (beside `source`;
/// ".textproto" may be left out), that over its own base, up to 8 of them. What the text gives
/// replaces what its base gives, a list as a whole; a base's name is its own and stays out. `base`
/// itself is not left in the result. Gives the complaint about the first thing that is wrong, empty
/// when nothing is; throws ConfigError when a base cannot be read.
std::string parse_with_base(const std::string& text, const std::string& source,
                            Experiment& experiment, Origins& origins);

} // namespace troupe::experiments

#pragma once

#include <string>

#include "experiments/config/parse.hpp"

namespace troupe::experiments {

/// Parses text format into `experiment`, on top of the file that its key `base` names (relative to
/// `source`; ".textproto" may be omitted), and that on its own base, up to 8 levels. Keys of the
/// text replace those of its base, a list as a whole; `name` is not inherited, and `base` is
/// cleared. Returns the first complaint, empty if there is none. Throws ConfigError if a base
/// cannot be read.
std::string parse_with_base(const std::string& text, const std::string& source,
                            Experiment& experiment, Origins& origins);

} // namespace troupe::experiments

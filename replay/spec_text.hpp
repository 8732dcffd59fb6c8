#pragma once

#include <cstdint>
#include <string>

#include "replay/spec.hpp"

namespace troupe::replay {

/// "frame uint8 [3, 84, 84], stack 3, …", for messages to a person.
std::string describe(const TransitionSpec& spec);

/// The same for equal specs, on every machine; different specs differ in all likelihood.
std::uint64_t fingerprint(const TransitionSpec& spec);

} // namespace troupe::replay

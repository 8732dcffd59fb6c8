#pragma once

#include <memory>

#include "learner/transparent/settings.hpp"

namespace troupe::collectives {
class Communicator;
struct Place;
} // namespace troupe::collectives

namespace troupe::learner::transparent {

/// Meets the other ranks of `place`: by shared memory where all are on one host, by Gloo
/// elsewhere, or by the backend that the settings name. Throws std::invalid_argument for what does
/// not fit together, and std::runtime_error when the others do not come.
std::unique_ptr<collectives::Communicator> meet(const collectives::Place& place,
                                                const Settings& settings);

} // namespace troupe::learner::transparent

#include "env/interaction/watched.hpp"

#include <stdexcept>

namespace troupe::env {

Watched::Watched(std::unique_ptr<Environment> wrapped, Watcher watcher)
    : Wrapper(std::move(wrapped)), watcher_(std::move(watcher)) {
  if (physics() == nullptr)
    throw std::invalid_argument("the environment " + spec_.name
                                + " has no MuJoCo simulation to watch; choose one from the control "
                                  "suite, from Gym or your own with a model");
}

TimeStep Watched::reset(std::uint64_t seed, std::span<std::byte> observation) {
  const TimeStep made = inner().reset(seed, observation);
  watcher_.after(*physics(), made);
  return made;
}

TimeStep Watched::step(std::span<const double> action, std::span<std::byte> observation) {
  if (watcher_.before)
    watcher_.before(*physics());
  const TimeStep made = inner().step(action, observation);
  watcher_.after(*physics(), made);
  return made;
}

} // namespace troupe::env

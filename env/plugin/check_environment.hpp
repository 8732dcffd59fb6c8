#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"

namespace troupe::env {

/// A violation of the contract in environment.hpp. A warning may be intended: all episodes begin
/// alike, or actions have no effect.
struct CheckFinding {
  bool error = true;
  std::string rule; // one or two words: "seed", "save and load"
  std::string text; // one line
};

struct CheckOptions {
  std::uint64_t seed = 1;
  std::int64_t steps = 40;             // of each compared rollout
  std::int64_t episode_steps = 20'000; // how long to wait for the end of an episode
};

/// Plays environments made by `make` and checks that
///   - the spec is valid;
///   - one seed gives the same bits in a new environment, after another episode and alongside
///   another
///     environment, and other seeds give other episodes;
///   - every value is written, finite and of its type;
///   - actions at, within and beyond their bounds work;
///   - an episode ends when the spec says, with a matching discount;
///   - a loaded state continues bit for bit;
///   - bad arguments are refused as environment.hpp says.
/// An exception from an environment becomes a finding. Makes about 10 environments and plays one
/// episode to its end.
std::vector<CheckFinding>
check_environment(const std::function<std::unique_ptr<Environment>()>& make,
                  const CheckOptions& options = {});

} // namespace troupe::env

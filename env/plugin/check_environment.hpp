#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"

namespace troupe::env {

/// Something that an environment does against its contract (environment.hpp). A warning may be
/// meant so: every episode beginning alike, actions without effect.
struct CheckFinding {
  bool error = true;
  std::string rule; // one word or two: "seed", "save and load"
  std::string text; // one line
};

struct CheckOptions {
  std::uint64_t seed = 1;
  std::int64_t steps = 40;             // of the rollouts that are compared
  std::int64_t episode_steps = 20'000; // how long the end of an episode is waited for
};

/// Plays with environments that `make` makes and compares: the spec; the same seed gives the same
/// bits, in a new environment, after another episode and beside another environment; other seeds
/// give other episodes; everything is written, finite and typed as it should be; actions at, within
/// and beyond their bounds; an episode ends when the spec says, with a discount that fits; a saved
/// state goes on bit for bit; what is wrong is refused as environment.hpp says. Never throws what
/// an environment throws: that is a finding. Not for environments that are slow to make or to step:
/// about 10 are made, and one episode is played to its end.
std::vector<CheckFinding>
check_environment(const std::function<std::unique_ptr<Environment>()>& make,
                  const CheckOptions& options = {});

} // namespace troupe::env

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/bench/bench.hpp"

namespace troupe::experiments::commands {

struct BenchStage {
  std::string name;
  std::function<void(const BenchOptions&, const Report&)> run;
};

/// The stages that this program was built with, in the order in which data flows.
std::vector<BenchStage> bench_stages();

} // namespace troupe::experiments::commands

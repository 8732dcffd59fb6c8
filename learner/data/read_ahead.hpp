#pragma once

#include <cstdint>
#include <memory>

#include "learner/data/dataset.hpp"
#include "learner/data/prefetcher.hpp"

namespace troupe::learner {

/// Fetches a replica's batches ahead according to its plan: steps `first` to `end` - 1, counted
/// over all epochs. Step s is step s modulo steps_per_epoch() of epoch s / steps_per_epoch().
/// Throws std::invalid_argument (EpochPlan::check(), PrefetchOptions).
std::unique_ptr<Prefetcher> read_ahead(std::shared_ptr<const Dataset> dataset,
                                       const EpochPlan& plan, std::int64_t first, std::int64_t end,
                                       const PrefetchOptions& options = {});

} // namespace troupe::learner

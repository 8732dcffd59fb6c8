#pragma once

#include <functional>

#include "learner/data/dataset.hpp"
#include "learner/data/prefetcher.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::learner {

/// Part `part` of `parts` of the data set's rows, `most` at once, fetched ahead on other threads,
/// each given to `visit` on this one; all parts together see every row once. A part without rows
/// sees one that does not count, so that what comes of a row is known everywhere. Throws
/// std::invalid_argument for a data set without rows.
void visit_rows(const Dataset& dataset, int part, int parts, std::int64_t most,
                const PrefetchOptions& prefetch,
                const std::function<void(const TensorMap& batch, bool counts)>& visit);

/// What is measured of each row of a batch: {name: [rows]}.
using MeasureRows = std::function<TensorMap(const TensorMap& batch)>;

/// Sums over a part's rows, float64 scalars by name. Throws std::invalid_argument for what is not
/// one value per row.
TensorMap sum_over_rows(const Dataset& dataset, int part, int parts, std::int64_t most,
                        const MeasureRows& measure, const PrefetchOptions& prefetch = {});

/// Means over all rows, each row once, on every replica that calls it: the replicas of a sync group
/// share the rows and all call it; replicas of asynchronous strategies measure all rows each.
Metrics mean_over_rows(ReplicaContext& context, const Dataset& dataset, std::int64_t most,
                       const MeasureRows& measure, const PrefetchOptions& prefetch = {});

} // namespace troupe::learner

#pragma once

#include <functional>

#include "learner/data/dataset.hpp"
#include "learner/data/prefetcher.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::learner {

/// Visits the rows of part `part` of `parts` of a data set, at most `most` at a time. Other threads
/// fetch the rows ahead; `visit` is called on the calling thread. All parts together see each row
/// once. A part without rows is given one row that does not count, so that the shapes of the
/// results are known everywhere. Throws std::invalid_argument for an empty data set.
void visit_rows(const Dataset& dataset, int part, int parts, std::int64_t most,
                const PrefetchOptions& prefetch,
                const std::function<void(const TensorMap& batch, bool counts)>& visit);

/// Returns the measurements of each row of a batch: {name: [rows]}.
using MeasureRows = std::function<TensorMap(const TensorMap& batch)>;

/// Returns the sums over the rows of one part, float64 scalars by name. Throws
/// std::invalid_argument if `measure` does not return one value per row.
TensorMap sum_over_rows(const Dataset& dataset, int part, int parts, std::int64_t most,
                        const MeasureRows& measure, const PrefetchOptions& prefetch = {});

/// Returns means over all rows, each row once, on every replica that calls it. All replicas of a
/// sync group must call it, and share the rows; replicas whose parameters differ each measure all
/// rows (ReplicaContext::parameters_are_equal()).
Metrics mean_over_rows(ReplicaContext& context, const Dataset& dataset, std::int64_t most,
                       const MeasureRows& measure, const PrefetchOptions& prefetch = {});

} // namespace troupe::learner

#pragma once

#include <functional>

#include "learner/data/dataset.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::learner {

/// A replica's share of a computation: an equal part for each replica in sync, or all of it if
/// their parameters differ (ReplicaContext::parameters_are_equal()).
struct Share {
  int part = 0;
  int parts = 1;
};
Share share_of(const ReplicaContext& context);

/// Visits the replica's share of the rows of a data set, at most `most` at a time. Other threads
/// fetch the rows ahead; `visit` is called on the calling thread. All parts together see each row
/// once. A part without rows is given one row that does not count, so that the shapes of the
/// results are known everywhere. Throws std::invalid_argument for an empty data set.
void visit_rows(const ReplicaContext& context, const Dataset& dataset, std::int64_t most,
                const std::function<void(const TensorMap& batch, bool counts)>& visit);

/// Returns the measurements of each row of a batch: {name: [rows]}.
using MeasureRows = std::function<TensorMap(const TensorMap& batch)>;

/// Returns means over all rows, each row once, on every replica that calls it. All replicas of a
/// sync group must call it, and share the rows. Throws std::invalid_argument if `measure` does not
/// return one value per row.
Metrics mean_over_rows(ReplicaContext& context, const Dataset& dataset, std::int64_t most,
                       const MeasureRows& measure);

} // namespace troupe::learner

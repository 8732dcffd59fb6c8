#include "learner/data/row_means.hpp"

#include <algorithm>
#include <stdexcept>

#include <ATen/ops/arange.h>

#include "learner/data/prefetcher.hpp"

namespace troupe::learner {

Share share_of(const ReplicaContext& context) {
  if (!context.parameters_are_equal())
    return {};
  return {.part = context.rank_in_sync_group(), .parts = context.num_replicas_in_sync()};
}

void visit_rows(const ReplicaContext& context, const Dataset& dataset, std::int64_t most,
                const std::function<void(const TensorMap& batch, bool counts)>& visit) {
  const auto [part, parts] = share_of(context);
  const auto rows = dataset.size();
  if (rows < 1)
    throw std::invalid_argument("the data set to evaluate on has no rows");
  if (most < 1)
    throw std::invalid_argument("evaluation with " + std::to_string(most)
                                + " rows at once; it takes at least 1");
  const auto begin = rows * part / parts, end = rows * (part + 1) / parts;
  const auto mine = std::max<std::int64_t>(end - begin, 1);
  const auto batches = (mine + most - 1) / most;
  Prefetcher ahead(0, batches, [&](std::int64_t batch) {
    const auto first = std::min(begin, rows - 1) + batch * most;
    const auto count = std::min(most, mine - batch * most);
    return dataset.rows(at::arange(first, first + count, at::kLong), 0);
  });
  for (std::int64_t batch = 0; batch < batches; ++batch)
    visit(ahead.next(), begin < end);
}

Metrics mean_over_rows(ReplicaContext& context, const Dataset& dataset, std::int64_t most,
                       const MeasureRows& measure) {
  const at::NoGradGuard guard;
  TensorMap sums;
  visit_rows(context, dataset, most, [&](const TensorMap& batch, bool counts) {
    const auto rows = batch.begin()->second.size(0);
    for (const auto& [name, values] : measure(batch)) {
      if (values.dim() != 1 || values.size(0) != rows)
        throw std::invalid_argument("evaluation: measure() gave \"" + name + "\" as "
                                    + Nest(values).describe() + "; give one value per row, ["
                                    + std::to_string(rows) + "]");
      const auto sum = values.to(at::kDouble).sum() * (counts ? 1 : 0);
      sums[name] = sums.contains(name) ? sums[name] + sum : sum;
    }
  });
  const auto all =
      context.parameters_are_equal() ? context.all_reduce(Nest(sums), ReduceOp::sum) : Nest(sums);
  Metrics means;
  for (const auto& [name, sum] : all.map())
    means[name] = sum.tensor().item<double>() / static_cast<double>(dataset.size());
  return means;
}

} // namespace troupe::learner

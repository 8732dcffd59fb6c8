#include "learner/data/loader.hpp"

#include <limits>
#include <stdexcept>

#include "learner/data/read_ahead.hpp"

namespace troupe::learner::data {

EpochPlan plan_of(const InputContext& context, std::int64_t rows, const LoaderOptions& options) {
  const int in_sync = context.num_replicas_in_sync, pipelines = context.num_input_pipelines;
  const auto of_replica = context.per_replica_batch_size(options.global_batch);
  EpochPlan plan{.dataset_rows = rows,
                 .global_batch = options.global_batch,
                 .shuffle = options.shuffle,
                 .seed = options.seed};
  if (pipelines < in_sync) { // several replicas split the batches of one pipeline
    context.per_pipeline_batch_size(options.global_batch);
    plan.replicas = pipelines;
    plan.rank = context.input_pipeline_id;
  } else if (pipelines % in_sync == 0) { // sync groups take turns at the batches
    plan.replicas = in_sync;
    plan.groups = pipelines / in_sync;
    plan.group = context.input_pipeline_id / in_sync;
    plan.rank = context.input_pipeline_id % in_sync;
  } else { // backup workers: each replica on its own
    plan.global_batch = of_replica;
    plan.groups = pipelines;
    plan.group = context.input_pipeline_id;
  }
  plan.check();
  return plan;
}

InputFn make_input(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options) {
  if (!dataset)
    throw std::invalid_argument("input: there is no data set");
  if (options.epochs < 0)
    throw std::invalid_argument("epochs: " + std::to_string(options.epochs)
                                + " must be at least 0 (no end)");
  return [dataset, options](const InputContext& context) -> Input {
    const auto plan = plan_of(context, dataset->size(), options);
    const auto end = options.epochs > 0 ? options.epochs * plan.steps_per_epoch()
                                        : std::numeric_limits<std::int64_t>::max();
    const std::shared_ptr<Prefetcher> ahead = read_ahead(
        dataset, plan, context.first_step, end,
        {.threads = options.threads, .ahead = options.prefetch, .timeout = options.timeout});
    return [ahead] { return ahead->next(); };
  };
}

} // namespace troupe::learner::data

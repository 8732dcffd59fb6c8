#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// How many input pipelines a program has: what input_fn is called for.
enum class Pipelines : std::uint8_t {
  per_replica, // each replica reads its own batches of per_replica_batch_size rows
  per_worker,  // each process reads for its replicas: batches of num_replicas of them, cut by rows
  single       // one for the whole program, of global batches, cut by rows; the first replica's
};

/// The arguments of an input pipeline, as in tf.distribute.
struct InputContext {
  int num_replicas_in_sync = 1;
  int input_pipeline_id = 0;
  int num_input_pipelines = 1;
  std::int64_t first_step = 0; // the next step: a resumed program's pipeline skips used data

  /// Throws std::invalid_argument naming both numbers when the global batch does not divide.
  std::int64_t per_replica_batch_size(std::int64_t global_batch_size) const;
  /// Rows of a batch of this pipeline: the global batch's part for all the replicas that it feeds.
  /// Throws std::invalid_argument when it does not divide.
  std::int64_t per_pipeline_batch_size(std::int64_t global_batch_size) const;
};

/// A stream of batches. `next` may block until its own deadline; an empty map is the end of the
/// data.
using Input = std::function<TensorMap()>;
using InputFn = std::function<Input(const InputContext&)>;

/// Part `part` of `parts` of a batch's rows (first dimension). Views. Throws std::invalid_argument
/// naming the tensor whose rows do not divide.
TensorMap part_of_batch(const TensorMap& batch, int part, int parts);

} // namespace troupe::learner

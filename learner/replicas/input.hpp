#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// How many input pipelines a program has, i.e. how often input_fn is called.
enum class Pipelines : std::uint8_t {
  per_replica, // each replica reads batches of per_replica_batch_size() rows
  per_worker,  // each process reads for its replicas and splits batches by rows
  single       // the first replica reads global batches for the program, split by rows
};

/// The arguments of an input pipeline, as in tf.distribute.
struct InputContext {
  int num_replicas_in_sync = 1;
  int input_pipeline_id = 0;
  int num_input_pipelines = 1;
  std::int64_t first_step = 0; // the next step, so a resumed program can skip used data

  /// Throws std::invalid_argument naming both numbers if the global batch size is not divisible.
  std::int64_t per_replica_batch_size(std::int64_t global_batch_size) const;
  /// Returns the number of rows in a batch of this pipeline: its part of the global batch, for all
  /// replicas that it feeds. Throws std::invalid_argument if the global batch size is not
  /// divisible.
  std::int64_t per_pipeline_batch_size(std::int64_t global_batch_size) const;
};

/// A stream of batches. A call may block until the input's own deadline. An empty map marks the end
/// of the data.
using Input = std::function<TensorMap()>;
using InputFn = std::function<Input(const InputContext&)>;

/// Returns part `part` of `parts` of a batch's rows (the first dimension), as views. Throws
/// std::invalid_argument naming the tensor whose rows are not divisible.
TensorMap part_of_batch(const TensorMap& batch, int part, int parts);

} // namespace troupe::learner

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "learner/data/dataset.hpp"
#include "learner/data/prefetcher.hpp"
#include "learner/replicas/input.hpp"

namespace troupe::learner::data {

struct LoaderOptions {
  std::int64_t global_batch = 32; // rows of one step of all replicas in sync
  bool shuffle = true;
  std::uint64_t seed = 1;  // of the order of the rows
  int threads = 1;         // of each pipeline
  int prefetch = 2;        // batches of each pipeline that are ready or being made; >= threads
  std::int64_t epochs = 0; // after which the data end; 0: never
  bool keep_last =
      false; // the smaller batch at an epoch's end; its mean counts as EpochPlan::weight
  std::chrono::seconds timeout{600}; // a batch is waited for
};

/// What a pipeline reads of each epoch. Throws std::invalid_argument naming what does not divide or
/// fit.
EpochPlan plan_of(const InputContext& context, std::int64_t rows, const LoaderOptions& options);

/// Batches of a data set for each replica (Pipelines::per_replica), process or program: shared
/// without overlap, reshuffled each epoch by the seed alone, made ahead by threads, starting
/// at InputContext::first_step, also in the middle of an epoch. A row that cannot be had
/// is an exception of the batch that it belongs to. The last copy of an Input joins its threads.
InputFn make_input(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);

} // namespace troupe::learner::data

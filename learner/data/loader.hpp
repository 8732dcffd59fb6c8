#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "learner/data/dataset.hpp"
#include "learner/data/prefetcher.hpp"
#include "learner/replicas/input.hpp"

namespace troupe::learner::data {

struct LoaderOptions {
  std::int64_t global_batch = 32; // rows of one step, over all replicas in sync
  bool shuffle = true;
  std::uint64_t seed = 1;  // of the order of rows
  int threads = 1;         // per pipeline
  int prefetch = 2;        // batches per pipeline that are ready or in preparation; >= threads
  std::int64_t epochs = 0; // after which the data end; 0: unlimited
  std::chrono::seconds timeout{600}; // maximum wait for a batch
};

/// The part of each epoch that one pipeline reads. Throws std::invalid_argument naming sizes that
/// do not divide or fit.
EpochPlan plan_of(const InputContext& context, std::int64_t rows, const LoaderOptions& options);

/// Returns an input that gives each replica (Pipelines::per_replica), process or program its
/// batches of a data set. They share the rows without overlap, and the seed alone determines the
/// order of each epoch. Threads prepare batches ahead, beginning at InputContext::first_step, which
/// may be in the middle of an epoch. A row that cannot be read throws from the batch that contains
/// it. Destroying the last copy of an Input joins its threads.
InputFn make_input(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);

} // namespace troupe::learner::data

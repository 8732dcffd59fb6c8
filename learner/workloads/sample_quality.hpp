#pragma once

#include <cstdint>
#include <functional>

#include "learner/data/dataset.hpp"
#include "learner/replicas/replica.hpp"
#include "learner/workloads/frechet.hpp"

namespace troupe::learner {

/// Describes pictures by a trained network: {"features": [rows, n], "logits": [rows, classes]}.
/// Classifier::describe() is one.
using DescribePictures = std::function<TensorMap(const at::Tensor& pictures)>;

/// Samples pictures of these classes, int64 [n], from the generator's random numbers.
using SamplePictures = std::function<at::Tensor(const at::Tensor& labels, at::Generator generator)>;

/// Returns statistics of all "picture"s in a data set, each once, `most` at a time. Every replica
/// in sync must call it; they share the pictures. Replicas whose parameters differ each process
/// all of them.
FeatureStatistics statistics_of(ReplicaContext& context, const Dataset& dataset, std::int64_t most,
                                const DescribePictures& describe);

/// Compares `count` samples, over all classes in turn, with real pictures: "frechet_distance",
/// "class_score". The replicas in sync share the samples, and must all call it; those whose
/// parameters differ each make all samples. The samples depend only on `seed`, not on the number of
/// replicas. Throws std::invalid_argument for fewer than two samples.
Metrics measure_samples(ReplicaContext& context, const SamplePictures& sample,
                        const DescribePictures& describe, const FeatureStatistics& real,
                        std::int64_t count, std::int64_t classes, std::uint64_t seed);

} // namespace troupe::learner

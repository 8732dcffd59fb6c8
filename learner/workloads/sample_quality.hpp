#pragma once

#include <cstdint>
#include <functional>

#include "learner/data/dataset.hpp"
#include "learner/replicas/replica.hpp"
#include "learner/workloads/frechet.hpp"

namespace troupe::learner {

/// What a trained network sees in pictures, {"features": [rows, n], "logits": [rows, classes]}: a
/// Classifier's describe().
using DescribePictures = std::function<TensorMap(const at::Tensor& pictures)>;

/// Pictures of these classes, int64 [n], made of the generator's random numbers.
using SamplePictures = std::function<at::Tensor(const at::Tensor& labels, at::Generator generator)>;

/// Of all "picture"s of a data set, each once, `most` at once; on every replica in sync, which
/// share them and all call it. Asynchronous replicas see all of them.
FeatureStatistics statistics_of(ReplicaContext& context, const Dataset& dataset, std::int64_t most,
                                const DescribePictures& describe);

/// Compares `count` samples, the classes in turn, with real pictures: "frechet_distance",
/// "class_score". The replicas in sync share the samples and all call it; the samples depend only
/// on `seed`, not on the number of replicas. Throws std::invalid_argument for less than two.
Metrics measure_samples(ReplicaContext& context, const SamplePictures& sample,
                        const DescribePictures& describe, const FeatureStatistics& real,
                        std::int64_t count, std::int64_t classes, std::uint64_t seed);

} // namespace troupe::learner

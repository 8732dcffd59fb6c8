#include "learner/workloads/sample_quality.hpp"

#include <algorithm>
#include <stdexcept>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>

#include "env/split_mix.hpp"
#include "learner/data/row_means.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kAtOnce = 50; // samples that share one random stream

} // namespace

FeatureStatistics statistics_of(ReplicaContext& context, const Dataset& dataset, std::int64_t most,
                                const DescribePictures& describe) {
  FeatureStatistics statistics;
  visit_rows(context, dataset, most, [&](const TensorMap& batch, bool counts) {
    if (counts)
      statistics.add(describe(batch.at("picture")).at("features"));
  });
  statistics.reduce(context);
  return statistics;
}

Metrics measure_samples(ReplicaContext& context, const SamplePictures& sample,
                        const DescribePictures& describe, const FeatureStatistics& real,
                        std::int64_t count, std::int64_t classes, std::uint64_t seed) {
  if (count < 2)
    throw std::invalid_argument("measure_samples: " + std::to_string(count)
                                + " samples have no covariance; take at least 2");
  FeatureStatistics made;
  ClassScore score;
  const auto portions = (count + kAtOnce - 1) / kAtOnce;
  const auto [part, parts] = share_of(context);
  for (std::int64_t portion = part; portion < portions; portion += parts) {
    const auto first = portion * kAtOnce;
    const auto labels =
        at::arange(first, std::min(count, first + kAtOnce), at::kLong).remainder(classes);
    const auto seen = describe(sample(
        labels, at::make_generator<at::CPUGeneratorImpl>(env::mix_bits(
                    seed + (static_cast<std::uint64_t>(portion) + 1) * env::kSplitMixStep))));
    made.add(seen.at("features"));
    score.add(seen.at("logits"));
  }
  made.reduce(context);
  score.reduce(context);
  return {{"frechet_distance", frechet_distance(real, made)}, {"class_score", score.value()}};
}

} // namespace troupe::learner

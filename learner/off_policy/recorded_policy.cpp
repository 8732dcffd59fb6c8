#include "learner/off_policy/recorded_policy.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>

#include <torch/types.h>

namespace troupe::learner {
namespace {

constexpr std::int64_t kActAtOnce = 1024; // rows

std::span<float> floats_of(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

/// Advances the memory of some episodes together, from each row to the next one.
void unroll(const RecordedSteps& steps, Policy& policy, std::int64_t first_episode,
            std::int64_t last_episode, const at::Tensor& memory) {
  RecordedSteps::Place place;
  std::vector<std::int64_t> rows;
  for (std::int64_t t = 0;; ++t) {
    rows.clear();
    for (std::int64_t i = first_episode; i < last_episode; ++i)
      if (steps.first_row(i) + t < steps.last_row(i))
        rows.push_back(steps.first_row(i) + t);
    if (rows.empty())
      return;
    const at::Tensor index = at::tensor(rows, at::kLong);
    const at::Tensor state = memory.index_select(0, index);
    const at::Tensor played = steps.action().index_select(0, index);
    Observations observations = steps.observations(rows, place);
    observations.state = floats_of(state);
    policy.follow(observations, floats_of(played));
    memory.index_copy_(0, index + 1, state);
  }
}

} // namespace

RecordedPolicy::RecordedPolicy(const RecordedSteps& steps, Policy& policy, std::int64_t trained)
    : steps_(steps), policy_(policy), trained_(trained) {
  if (policy.state_size() == 0)
    return;
  memory_ = at::zeros({steps.rows(), policy.state_size()}, at::kFloat);
  for (std::int64_t from = 0; from < steps.episodes(); from += kActAtOnce)
    unroll(steps, policy, from, std::min(from + kActAtOnce, steps.episodes()), memory_);
}

void RecordedPolicy::in_chunks(
    const std::function<void(const Observations&, std::int64_t)>& act) const {
  std::vector<std::int64_t> chunk;
  RecordedSteps::Place place;
  for (std::int64_t from = 0; from < steps_.rows(); from += kActAtOnce) {
    chunk.resize(static_cast<std::size_t>(std::min(kActAtOnce, steps_.rows() - from)));
    std::iota(chunk.begin(), chunk.end(), from);
    Observations observations = steps_.observations(chunk, place);
    at::Tensor state; // acting replaces it
    if (memory_.defined()) {
      state = memory_.narrow(0, from, observations.batch).clone();
      observations.state = floats_of(state);
    }
    act(observations, from);
  }
}

at::Tensor RecordedPolicy::actions(ActingRandom* random) const {
  const std::int64_t size = steps_.transitions().action_size;
  at::Tensor made = at::empty({steps_.rows(), size}, at::kFloat);
  in_chunks([&](const Observations& observations, std::int64_t from) {
    const std::span<float> some = floats_of(made.narrow(0, from, observations.batch));
    if (random == nullptr) {
      policy_.act(observations, some);
      return;
    }
    const std::vector<ActingRandom*> sources(static_cast<std::size_t>(observations.batch), random);
    policy_.explore(observations, {.steps = trained_, .random = sources}, some);
  });
  steps_.limit(made);
  return made;
}

std::vector<double> RecordedPolicy::log_probabilities() const {
  std::vector<double> made(static_cast<std::size_t>(steps_.rows()));
  in_chunks([&](const Observations& observations, std::int64_t from) {
    policy_.log_probability(observations, {.steps = trained_, .random = {}},
                            floats_of(steps_.action().narrow(0, from, observations.batch)),
                            std::span(made).subspan(static_cast<std::size_t>(from),
                                                    static_cast<std::size_t>(observations.batch)));
  });
  for (std::int64_t i = 0; i < steps_.episodes(); ++i)
    made[static_cast<std::size_t>(steps_.last_row(i))] = 0;
  return made;
}

} // namespace troupe::learner

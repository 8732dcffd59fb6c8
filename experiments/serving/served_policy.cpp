#include "experiments/serving/served_policy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace troupe::experiments::serving {

ServedPolicy::ServedPolicy(PolicyContract contract, env::EnvironmentSpec spec,
                           std::unique_ptr<learner::Policy> policy)
    : contract_(std::move(contract)), spec_(std::move(spec)), policy_(std::move(policy)) {}

void ServedPolicy::complete_history(std::span<std::byte> observation,
                                    std::span<const std::byte> before) const {
  const auto frames = static_cast<std::size_t>(contract_.history);
  const auto all = observation.subspan(spec_.observation_offset(0), frames * frame_bytes());
  for (std::size_t i = 0; before.empty() && i + 1 < frames; ++i) // repeat the first frame
    std::ranges::copy(all.last(frame_bytes()), all.subspan(i * frame_bytes()).begin());
  std::ranges::copy(before, all.begin());
}

std::span<const std::byte> ServedPolicy::history_of(std::span<const std::byte> observation) const {
  const auto frames = static_cast<std::size_t>(contract_.history);
  return observation.subspan(spec_.observation_offset(0), frames * frame_bytes())
      .last((frames - 1) * frame_bytes());
}

void ServedPolicy::act(std::span<const std::byte* const> observations, std::span<float> states,
                       std::span<float> actions) {
  const std::size_t bytes = spec_.observation_bytes();
  std::vector<const std::byte*> frames(observations.begin(), observations.end());
  if (std::ranges::any_of(contract_.observations,
                          [](const ContractArray& array) { return !array.mean.empty(); })) {
    normalised_.resize(frames.size() * bytes);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const auto copy = std::span(normalised_).subspan(i * bytes, bytes);
      std::ranges::copy(std::span(frames[i], bytes), copy.begin());
      normalise(contract_, spec_, copy);
      frames[i] = copy.data();
    }
  }
  policy_->act({.frames = frames,
                .frame_bytes = bytes,
                .batch = static_cast<std::int64_t>(frames.size()),
                .state = states},
               actions);
  const std::size_t size = action_size();
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (!std::isfinite(actions[i])) // scaling would make an infinite number finite
      actions[i] = std::numeric_limits<float>::quiet_NaN();
    else if (contract_.actions[i % size].choices == 0)
      actions[i] = static_cast<float>(contract_.scales[i % size](actions[i]));
  }
}

} // namespace troupe::experiments::serving

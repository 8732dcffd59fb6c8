#include "learner/off_policy/recorded_steps.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include <torch/types.h>

namespace troupe::learner {
namespace {

void check_recorded_choices(const at::Tensor& actions, const replay::TransitionSpec& transitions) {
  for (std::int64_t i = 0; i < transitions.action_size; ++i) {
    const std::int64_t n = transitions.choices_of(static_cast<std::size_t>(i));
    const at::Tensor choices = actions.select(1, i);
    const at::Tensor unknown =
        choices.lt(0).logical_or(choices.gt(n - 1)).logical_or(choices.ne(choices.floor()));
    if (n > 0 && unknown.any().item<bool>())
      throw std::invalid_argument("a recorded choice is not in 0 to " + std::to_string(n - 1)
                                  + "; record again");
  }
}

} // namespace

RecordedSteps::RecordedSteps(std::vector<replay::Episode> episodes,
                             replay::TransitionSpec transitions)
    : episodes_(std::move(episodes)), transitions_(std::move(transitions)), starts_{0} {
  if (episodes_.empty())
    throw std::invalid_argument("the recording has no episode; record some");
  for (const replay::Episode& episode : episodes_) {
    if (episode.steps() < 1)
      throw std::invalid_argument("a recorded episode has no step; record it again");
    starts_.push_back(starts_.back() + episode.rows());
  }
  episode_ = at::empty({rows()}, at::kLong);
  time_ = at::zeros({rows()}, at::kFloat);
  reward_ = at::zeros({rows()}, at::kFloat);
  discount_ = at::zeros({rows()}, at::kFloat);
  action_ = at::zeros({rows(), transitions_.action_size}, at::kFloat);
  const bool probable = episodes_[0].has_log_probability();
  if (probable)
    log_probability_ = at::zeros({rows()}, at::kFloat);
  for (std::int64_t i = 0; i < this->episodes(); ++i) {
    const replay::Episode& episode = episodes_[at(i)];
    if (episode.has_log_probability() != probable)
      throw std::invalid_argument("some recorded episodes have log-probabilities of their actions, "
                                  "others have none; evaluate them separately");
    for (std::int64_t t = 0; t < episode.rows(); ++t) {
      const std::int64_t row = first_row(i) + t;
      episode_.mutable_data_ptr<std::int64_t>()[row] = i;
      time_.mutable_data_ptr<float>()[row] = static_cast<float>(t);
      if (t == episode.steps())
        continue;
      reward_.mutable_data_ptr<float>()[row] = episode.reward(t + 1);
      discount_.mutable_data_ptr<float>()[row] = episode.discount(t + 1);
      if (probable)
        log_probability_.mutable_data_ptr<float>()[row] = episode.log_probability(t + 1);
      std::ranges::copy(episode.action(t + 1),
                        action_.mutable_data_ptr<float>() + row * transitions_.action_size);
    }
  }
  check_recorded_choices(action_, transitions_);
  limit(action_);
}

std::int64_t RecordedSteps::longest() const {
  std::int64_t most = 0;
  for (const replay::Episode& episode : episodes_)
    most = std::max(most, episode.steps());
  return most;
}

std::vector<std::int64_t> RecordedSteps::step_rows(std::int64_t episode) const {
  std::vector<std::int64_t> rows(at(last_row(episode) - first_row(episode)));
  std::iota(rows.begin(), rows.end(), first_row(episode));
  return rows;
}

void RecordedSteps::limit(const at::Tensor& actions) const {
  for (std::int64_t i = 0; i < transitions_.action_size; ++i)
    if (transitions_.choices_of(at(i)) == 0)
      actions.select(1, i).clamp_(-1, 1);
}

Observations RecordedSteps::observations(std::span<const std::int64_t> rows, Place& place) const {
  place.frames.clear();
  place.vectors.clear();
  for (const std::int64_t row : rows) {
    const std::int64_t number = episode_.const_data_ptr<std::int64_t>()[row];
    const replay::Episode& episode = episodes_[at(number)];
    const std::int64_t t = row - first_row(number);
    for (std::int64_t back = transitions_.stack - 1; back >= 0; --back)
      place.frames.push_back(episode.frame(std::max<std::int64_t>(0, t - back)).data());
    for (std::size_t i = 0; i < episode.vectors(); ++i)
      place.vectors.push_back(episode.vector(t, i).data());
  }
  return {.frames = place.frames,
          .frame_bytes = transitions_.frame.bytes(),
          .batch = static_cast<std::int64_t>(rows.size()),
          .vectors = place.vectors};
}

Observed RecordedSteps::observed(std::span<const std::int64_t> rows) const {
  Place where;
  const std::vector<float> none(rows.size() * at(transitions_.action_size));
  return learner::observed(observations(rows, where), transitions_, none);
}

std::vector<double> RecordedSteps::returns(double discount) const {
  std::vector<double> sums;
  for (const replay::Episode& episode : episodes_) {
    double sum = 0;
    for (std::int64_t t = episode.steps(); t > 0; --t)
      sum = episode.reward(t) + discount * sum;
    sums.push_back(sum);
  }
  return sums;
}

at::Tensor encoded_actions(const at::Tensor& actions, const replay::TransitionSpec& transitions) {
  std::vector<at::Tensor> parts;
  for (std::int64_t i = 0; i < transitions.action_size; ++i) {
    const std::int64_t choices = transitions.choices_of(static_cast<std::size_t>(i));
    const at::Tensor number = actions.narrow(1, i, 1);
    parts.push_back(
        choices == 0
            ? number
            : at::one_hot(number.squeeze(1).to(at::kLong), choices).to(actions.scalar_type()));
  }
  return at::cat(parts, 1);
}

} // namespace troupe::learner

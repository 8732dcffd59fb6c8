#include "learner/agents/parts/exploration.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "env/state_bytes.hpp"

namespace troupe::learner {

double Schedule::at(std::int64_t step) const {
  const double done = static_cast<double>(step) / static_cast<double>(steps);
  return start + std::clamp(done, 0.0, 1.0) * (end - start);
}

HeldDraws::HeldDraws(std::int64_t most, std::size_t size) : size_(size) {
  double sum = 0;
  for (std::int64_t n = 1; most > 1 && n <= most; ++n)
    cumulative_.push_back(sum += std::pow(static_cast<double>(n), -2));
  for (double& each : cumulative_)
    each /= sum;
}

void HeldDraws::fit(const Exploration& exploration) {
  steps_.resize(exploration.random.size());
  numbers_.resize(exploration.random.size() * size_);
}

std::span<const double> HeldDraws::kept(const Exploration& exploration, std::size_t row) {
  fit(exploration);
  if (exploration.begins(row))
    steps_[row] = 0;
  if (steps_[row] == 0)
    return {};
  --steps_[row];
  return std::span(numbers_).subspan(row * size_, size_);
}

std::span<double> HeldDraws::renew(const Exploration& exploration, std::size_t row) {
  fit(exploration);
  const double drawn = exploration.random[row]->uniform(); // below cumulative_.back()
  steps_[row] = std::upper_bound(cumulative_.begin(), cumulative_.end(), drawn)
                - cumulative_.begin(); // the current step is not counted
  return std::span(numbers_).subspan(row * size_, size_);
}

void HeldDraws::save_state(std::vector<std::byte>& out) const {
  if (!holds())
    return;
  env::save_value(out, static_cast<std::uint64_t>(steps_.size()));
  env::save_array(out, std::span(steps_));
  env::save_array(out, std::span(numbers_));
}

std::span<const std::byte> HeldDraws::load_state(std::span<const std::byte> in) {
  if (!holds())
    return in;
  std::uint64_t rows = 0;
  env::load_value(in, rows, "number of rows that explore");
  if (rows > in.size() / sizeof(std::int64_t))
    throw std::invalid_argument("the saved exploration is truncated: " + std::to_string(rows)
                                + " rows in " + std::to_string(in.size()) + " bytes");
  steps_.resize(rows);
  numbers_.resize(rows * size_);
  env::load_array(in, std::span(steps_), "steps of held exploration");
  env::load_array(in, std::span(numbers_), "held exploration");
  for (const std::int64_t steps : steps_)
    if (steps < 0)
      throw std::invalid_argument("the saved exploration is held for " + std::to_string(steps)
                                  + " steps; it must be at least 0");
  return in;
}

void NoiseConfig::add_members(Members& members) {
  members.push_back({"noise_start", &start});
  members.push_back({"noise_end", &end});
  members.push_back({"noise_steps", &steps});
  members.push_back({"noise_hold", &hold});
}

std::vector<OptionProblem> NoiseConfig::problems(const std::string& agent) const {
  if (end <= start)
    return {};
  return {{"noise_end", "is " + number_text(end) + "; it must be at most " + agent
                            + ".noise_start, " + number_text(start) + ": noise falls"}};
}

void EpsilonConfig::add_members(Members& members) {
  members.insert(members.end(), {{"epsilon_start", &probability.start},
                                 {"epsilon_end", &probability.end},
                                 {"epsilon_steps", &probability.steps},
                                 {"epsilon_ladder", &ladder},
                                 {"epsilon_hold", &hold}});
}

double EpsilonConfig::at(const Exploration& exploration, std::size_t row) const {
  const double now = probability.at(exploration.steps);
  const auto others = static_cast<double>(exploration.total_lanes - 1);
  if (ladder == 0 || others < 1)
    return now;
  const double lane = static_cast<double>(exploration.first_lane) + static_cast<double>(row);
  return std::pow(now, 1 + ladder * lane / others);
}

void EpsilonGreedy::apply(const Exploration& exploration, std::int64_t choices,
                          std::span<float> actions) {
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (held_.holds())
      if (const auto kept = held_.kept(exploration, i); !kept.empty()) {
        actions[i] = static_cast<float>(std::clamp(kept[0], 0.0, static_cast<double>(choices - 1)));
        continue;
      }
    ActingRandom& random = *exploration.random[i];
    if (random.uniform() >= config_.at(exploration, i))
      continue;
    const double choice = std::floor(random.uniform() * static_cast<double>(choices));
    actions[i] = static_cast<float>(choice);
    if (held_.holds())
      held_.renew(exploration, i)[0] = choice;
  }
}

void EpsilonGreedy::log_probability(const Exploration& exploration, std::int64_t choices,
                                    std::span<const float> best, std::span<const float> actions,
                                    std::span<double> out) const {
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const double random = std::clamp(config_.at(exploration, i), 0.0, 1.0);
    out[i] =
        std::log((actions[i] == best[i] ? 1 - random : 0) + random / static_cast<double>(choices));
  }
}

void add_noise(const Schedule& deviation, const Exploration& exploration,
               std::span<float> actions) {
  const double noise = deviation.at(exploration.steps);
  if (noise <= 0)
    return;
  const std::size_t size = actions.size() / exploration.random.size();
  for (std::size_t i = 0; i < actions.size(); ++i)
    actions[i] = static_cast<float>(
        std::clamp(actions[i] + noise * exploration.random[i / size]->normal(), -1.0, 1.0));
}

} // namespace troupe::learner

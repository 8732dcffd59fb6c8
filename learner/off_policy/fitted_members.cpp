#include "learner/off_policy/fitted_members.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "env/random.hpp"
#include "learner/acting/collector.hpp"

namespace troupe::learner {
namespace {

constexpr std::uint64_t kSeedOfFit = 7; // component of the path for split_seed()
constexpr int kDraws = 8;               // actions drawn at each row from a policy that explores

std::vector<std::int64_t> drawn_again(std::int64_t episodes, std::uint64_t seed) {
  env::Random random(seed);
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(episodes));
  for (std::int64_t& episode : drawn)
    episode = static_cast<std::int64_t>(random.bits() % static_cast<std::uint64_t>(episodes));
  return drawn;
}

double mean_first(const RecordedSteps& steps, const FittedValues& values,
                  std::span<const std::int64_t> episodes) {
  double sum = 0;
  for (const std::int64_t episode : episodes)
    sum += values.policy[static_cast<std::size_t>(steps.first_row(episode))];
  return sum / static_cast<double>(episodes.size());
}

} // namespace

FittedValues unseen_values(const RecordedSteps& steps, std::span<const FittedValues> members,
                           std::span<const std::vector<std::int64_t>> drawn) {
  const auto rows = static_cast<std::size_t>(steps.rows());
  FittedValues made{std::vector<double>(rows), std::vector<double>(rows)};
  for (std::int64_t episode = 0; episode < steps.episodes(); ++episode) {
    std::vector<const FittedValues*> asked;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (std::ranges::find(drawn[i], episode) == drawn[i].end())
        asked.push_back(&members[i]);
    if (asked.empty())
      for (const FittedValues& values : members)
        asked.push_back(&values);
    for (auto row = static_cast<std::size_t>(steps.first_row(episode));
         row <= static_cast<std::size_t>(steps.last_row(episode)); ++row)
      for (const FittedValues* values : asked) {
        made.policy[row] += values->policy[row] / static_cast<double>(asked.size());
        made.recorded[row] += values->recorded[row] / static_cast<double>(asked.size());
      }
  }
  return made;
}

FittedMembers fit_members(const RecordedPolicy& policy, const FittedMembersConfig& config,
                          const std::function<void(int, double)>& told,
                          const std::function<bool()>& stopped) {
  const RecordedSteps& steps = policy.steps();
  std::vector<std::int64_t> all(static_cast<std::size_t>(steps.episodes()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<FittedValues> members;
  std::vector<std::vector<std::int64_t>> drawn;
  FittedMembers made;
  for (int member = 0; member < config.members; ++member) {
    FittedEvaluation fit = config.fit;
    fit.seed = split_seed(config.fit.seed, {kSeedOfFit, static_cast<std::uint64_t>(member)});
    ActingRandom random{std::mt19937_64(fit.seed)};
    std::vector<at::Tensor> actions;
    for (int draw = 0; draw < (config.explores ? kDraws : 1); ++draw)
      actions.push_back(policy.actions(config.explores ? &random : nullptr));
    drawn.push_back(drawn_again(steps.episodes(), fit.seed));
    members.push_back(fitted_values(steps, {actions, policy.memory()}, drawn.back(), fit, stopped));
    if (stopped && stopped())
      return made;
    made.means.push_back(mean_first(steps, members.back(), all));
    made.replicates.push_back(mean_first(steps, members.back(), drawn.back()));
    if (told)
      told(member, made.means.back());
  }
  made.unseen = unseen_values(steps, members, drawn);
  return made;
}

std::vector<WeighedEpisode> weighed_episodes(const RecordedSteps& steps,
                                             const std::vector<double>& target,
                                             const FittedValues& model) {
  const float* behaviour = steps.log_probability().const_data_ptr<float>();
  const float* reward = steps.reward().const_data_ptr<float>();
  const float* discount = steps.discount().const_data_ptr<float>();
  std::vector<WeighedEpisode> episodes;
  for (std::int64_t i = 0; i < steps.episodes(); ++i) {
    WeighedEpisode episode;
    for (std::int64_t row = steps.first_row(i); row < steps.last_row(i); ++row) {
      const auto at = static_cast<std::size_t>(row);
      WeighedStep step{.reward = reward[row], .log_ratio = target[at] - behaviour[row]};
      if (!model.policy.empty()) {
        step.action_value = model.recorded[at];
        step.value = model.policy[at];
        step.next_value = discount[row] * model.policy[at + 1];
      }
      episode.push_back(step);
    }
    episodes.push_back(std::move(episode));
  }
  return episodes;
}

} // namespace troupe::learner

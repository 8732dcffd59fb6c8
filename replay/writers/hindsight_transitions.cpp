#include "replay/writers/hindsight_transitions.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "replay/writers/hindsight_items.hpp"

namespace troupe::replay {
namespace {

/// Replaces the goal, reward and discount of a transition.
class RelabelledTransition {
public:
  RelabelledTransition(const Hindsight& hindsight, const env::GoalSpec& goal)
      : hindsight_(hindsight), goal_(goal) {}

  std::optional<double> operator()(const Relabelling& item) const {
    const std::span<const float> desired = achieved(item, item.goal());
    const std::int64_t row = item.first();
    if (goal_.outcome(achieved(item, row - 1), desired).terminated)
      return {};
    const env::GoalOutcome outcome = goal_.outcome(achieved(item, row), desired);
    std::ranges::copy(std::as_bytes(desired), item.replace(row, kGoal).begin());
    put(item.replace(row, kReward), static_cast<float>(outcome.reward));
    put(item.replace(row, kDiscount), outcome.terminated ? 0.0F : 1.0F);
    return 1;
  }

private:
  std::span<const float> achieved(const Relabelling& item, std::int64_t row) const {
    const std::span<const std::byte> frame = item.at(row, kFrame);
    return std::span(reinterpret_cast<const float*>(frame.data()), frame.size() / sizeof(float))
        .subspan(static_cast<std::size_t>(hindsight_.achieved),
                 static_cast<std::size_t>(hindsight_.size));
  }
  static void put(std::span<std::byte> place, float value) {
    std::memcpy(place.data(), &value, sizeof value);
  }

  Hindsight hindsight_;
  env::GoalSpec goal_;
};

/// Returns the signature of the transitions without the columns of relabelled ones.
Signature own_columns(const TransitionSpec& spec) {
  Signature steps = spec;
  steps.columns.resize(kGoal + 1);
  return steps;
}

} // namespace

Writer hindsight_transition_writer(const TransitionSpec& spec, std::uint64_t writer_id,
                                   std::uint64_t seed, const env::GoalSpec& goal) {
  check(spec);
  const Hindsight& hindsight = spec.hindsight;
  if (!spec.has_hindsight() || !goal.outcome || goal.size != hindsight.size
      || goal.achieved != hindsight.achieved || goal.desired != hindsight.desired)
    throw std::invalid_argument("replay hindsight: the environment's goals are not those of "
                                + describe(Signature(spec)));
  HindsightOptions options{.columns = {"goal", "reward", "discount"},
                           .rows = {1, 1},
                           .goals = hindsight.goals,
                           .strategy = hindsight.strategy,
                           .max_rows = hindsight.episode_steps + 1,
                           .seed = seed};
  options.complete = [hindsight](Writer& writer) {
    const auto from = static_cast<std::size_t>(hindsight.desired) * sizeof(float);
    const std::span<std::byte> place = writer.next(kGoal);
    std::ranges::copy(writer.next(kFrame).subspan(from, place.size()), place.begin());
  };
  return hindsight_writer(own_columns(spec), writer_id, options,
                          RelabelledTransition(hindsight, goal));
}

} // namespace troupe::replay

// What recorded episodes say about a policy that did not play them.
#include "tests/doctest_torch.hpp"
#include "tests/learner/off_policy/weighed_returns.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "env/random.hpp"
#include "learner/off_policy/action_coverage.hpp"
#include "learner/off_policy/fitted_members.hpp"
#include "learner/off_policy/recorded_policy.hpp"
#include "learner/replicas/replica_threads.hpp"

using namespace troupe;
using namespace troupe::learner;

namespace {

constexpr int kPlaces = 6;          // of the corridor; the last place ends an episode
constexpr std::int64_t kSteps = 12; // after which an episode is truncated

/// A corridor: each step costs 1, choice 1 moves right, choice 0 moves left.
int next_place(int place, int choice) {
  return std::clamp(place + (choice == 1 ? 1 : -1), 0, kPlaces - 1);
}

replay::TransitionSpec corridor_spec() {
  return {.frame = {"place", env::ElementType::float32, {kPlaces}},
          .action_size = 1,
          .action_choices = {2}};
}

std::vector<std::byte> seen_at(int place) {
  std::vector<float> frame(kPlaces);
  frame[static_cast<std::size_t>(place)] = 1;
  const auto bytes = std::as_bytes(std::span(frame));
  return {bytes.begin(), bytes.end()};
}

/// Episodes of a walker that moves right with probability `right`.
RecordedSteps corridor(int episodes, double right, std::uint64_t seed) {
  env::Random random(seed);
  std::vector<replay::Episode> made;
  for (int i = 0; i < episodes; ++i) {
    replay::RecordingSpec spec = replay::recording_of(corridor_spec());
    spec.log_probability = true;
    replay::Episode episode(spec);
    int place = static_cast<int>(random.bits() % (kPlaces - 1));
    episode.begin(seen_at(place));
    while (place < kPlaces - 1 && episode.steps() < kSteps) {
      const int choice = random.uniform() < right ? 1 : 0;
      place = next_place(place, choice);
      const float action = static_cast<float>(choice);
      episode.append({&action, 1}, -1, place == kPlaces - 1 ? 0.F : 1.F, seen_at(place), {},
                     static_cast<float>(std::log(choice == 1 ? right : 1 - right)));
    }
    made.push_back(episode);
  }
  return {std::move(made), corridor_spec()};
}

/// A policy that always makes the same choice.
class Walker : public Policy {
public:
  explicit Walker(float choice) : choice_(choice) {}
  std::int64_t parameter_count() const override { return 0; }
  void load(std::span<const float>) override {}
  using Policy::act;
  void act(const Observations&, std::span<float> actions) override {
    std::ranges::fill(actions, choice_);
  }

private:
  float choice_;
};

/// A policy that moves right with a given probability.
class RandomWalker : public Walker {
public:
  explicit RandomWalker(double right) : Walker(1), right_(right) {}
  void explore(const Observations&, const Exploration& exploration,
               std::span<float> actions) override {
    for (std::size_t i = 0; i < actions.size(); ++i)
      actions[i] = exploration.random[i]->uniform() < right_ ? 1.F : 0.F;
  }
  bool has_density() const override { return true; }
  void log_probability(const Observations&, const Exploration&, std::span<const float> actions,
                       std::span<double> out) override {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = std::log(actions[i] == 1 ? right_ : 1 - right_);
  }

private:
  double right_;
};

/// The value for a walker that moves right with this probability, after `steps` steps, at `place`;
/// by recursion over the next step.
double expected_value(int place, std::int64_t steps, double right) {
  if (place == kPlaces - 1 || steps == kSteps)
    return 0;
  double sum = -1;
  for (const int choice : {0, 1})
    sum += (choice == 1 ? right : 1 - right) * kDiscount
           * expected_value(next_place(place, choice), steps + 1, right);
  return sum;
}

/// The value from this row on for a walker that always moves right or left.
double true_value(const RecordedSteps& steps, std::int64_t row, bool right) {
  const std::vector<std::int64_t> rows{row};
  const auto place = steps.observed(rows).frames.argmax().item<std::int64_t>();
  const std::int64_t count = right ? kPlaces - 1 - place : kSteps;
  return -(1 - std::pow(kDiscount, static_cast<double>(count))) / (1 - kDiscount);
}

std::vector<std::int64_t> all_episodes(const RecordedSteps& steps) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < steps.episodes(); ++i)
    all.push_back(i);
  return all;
}

replay::TransitionSpec guess_spec() {
  return {.frame = {"number", env::ElementType::float32, {1}}, .action_size = 1};
}

/// Episodes of random numbers in [-1, 1] and uniform guesses. A step costs the square of the
/// guess's error.
RecordedSteps guesses(int episodes, std::uint64_t seed) {
  env::Random random(seed);
  std::vector<replay::Episode> made;
  for (int i = 0; i < episodes; ++i) {
    replay::Episode episode(replay::recording_of(guess_spec()));
    auto number = static_cast<float>(random.uniform(-1, 1));
    episode.begin(std::as_bytes(std::span(&number, 1)));
    while (episode.steps() < kSteps) {
      const auto guess = static_cast<float>(random.uniform(-1, 1));
      const float cost = (guess - number) * (guess - number);
      number = static_cast<float>(random.uniform(-1, 1));
      episode.append({&guess, 1}, -cost, 1, std::as_bytes(std::span(&number, 1)));
    }
    made.push_back(episode);
  }
  return {std::move(made), guess_spec()};
}

/// Guesses `part` times the number that it sees.
class Guesser : public Walker {
public:
  explicit Guesser(float part) : Walker(0), part_(part) {}
  void act(const Observations& observations, std::span<float> actions) override {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      std::memcpy(&actions[i], observations.frames[i], sizeof(float));
      actions[i] *= part_;
    }
  }

private:
  float part_;
};

/// The expected return. The mean square of a number is 1/3.
double mean_guess(double part) {
  return -(1 - part) * (1 - part) / 3 * (1 - std::pow(kDiscount, kSteps)) / (1 - kDiscount);
}

FittedEvaluation small_fit(std::int64_t updates) {
  return {.layers = {32, 32},
          .batch_size = 64,
          .updates = updates,
          .discount = kDiscount,
          .time_limit = kSteps};
}

std::vector<double> estimated(const RecordedSteps& steps, const at::Tensor& actions,
                              std::int64_t updates) {
  prepare_compute_thread(1); // several threads would only wait for each other
  const FittedValues values =
      fitted_values(steps, {{&actions, 1}}, all_episodes(steps), small_fit(updates));
  std::vector<double> first;
  for (std::int64_t i = 0; i < steps.episodes(); ++i)
    first.push_back(values.policy[static_cast<std::size_t>(steps.first_row(i))]);
  return first;
}

} // namespace

TEST_CASE(
    "Values of both policies in a corridor are learned from random walks, also truncated ones") {
  const RecordedSteps steps = corridor(150, 0.5, 1);
  for (const bool right : {true, false}) {
    CAPTURE(right);
    Walker walker(right ? 1.F : 0.F);
    const std::vector<double> values =
        estimated(steps, RecordedPolicy(steps, walker).actions(), 2000);
    double error = 0;
    for (std::int64_t i = 0; i < steps.episodes(); ++i)
      error = std::max(error, std::abs(values[static_cast<std::size_t>(i)]
                                       - true_value(steps, steps.first_row(i), right)));
    CHECK(error < 0.35); // the values range from -1 to -7.2
  }
}

TEST_CASE("Values of continuous policies are learned from uniform actions, reproducibly") {
  const RecordedSteps steps = guesses(150, 5);
  for (const float part : {1.F, -1.F}) {
    CAPTURE(part);
    Guesser guesser(part);
    const at::Tensor actions = RecordedPolicy(steps, guesser).actions();
    const std::vector<double> values = estimated(steps, actions, 2000);
    double sum = 0;
    for (const double value : values)
      sum += value / static_cast<double>(values.size());
    CHECK(sum == doctest::Approx(mean_guess(part)).epsilon(0.05).scale(5));
    CHECK(estimated(steps, actions, 50) == estimated(steps, actions, 50));
  }
}

TEST_CASE(
    "A random walker's return is estimated from another one's steps by weights and networks") {
  const RecordedSteps steps = corridor(400, 0.5, 6);
  RandomWalker walker(0.65);
  double truth = 0;
  for (std::int64_t i = 0; i < steps.episodes(); ++i) {
    const std::vector<std::int64_t> first{steps.first_row(i)};
    const auto place = steps.observed(first).frames.argmax().item<std::int64_t>();
    truth +=
        expected_value(static_cast<int>(place), 0, 0.65) / static_cast<double>(steps.episodes());
  }
  prepare_compute_thread(1);
  const FittedMembers fitted =
      fit_members({steps, walker}, {.fit = small_fit(1000), .members = 2, .explores = true});
  REQUIRE(fitted.means.size() == 2);
  CHECK(fitted.means[0] == doctest::Approx(truth).epsilon(0.03));
  CHECK(fitted.means != fitted.replicates);
  const auto target = RecordedPolicy(steps, walker).log_probabilities();
  CHECK(target[static_cast<std::size_t>(steps.last_row(0))] == 0);
  const WeighedReturns returns(weighed_episodes(steps, target, fitted.unseen),
                               weighed_episodes(steps, target));
  for (const EstimatedReturn& made : returns.estimates()) {
    CAPTURE(made.mean);
    CHECK(std::abs(made.mean - truth) < 4 * made.error);
  }
  CHECK(returns.robust.estimate(returns.all).error < returns.plain.estimate(returns.all).error);
  CHECK(std::abs(returns.plain.weight().mean - 1) < 4 * returns.plain.weight().error);
  CHECK(returns.plain.effective_episodes() > 50);
  const auto again =
      fit_members({steps, walker}, {.fit = small_fit(20), .members = 2, .explores = true});
  CHECK(fit_members({steps, walker}, {.fit = small_fit(20), .members = 2, .explores = true})
            .unseen.recorded
        == again.unseen.recorded);
}

TEST_CASE("An episode's values come from the networks that were not trained on it") {
  const RecordedSteps steps = corridor(3, 0.5, 2);
  const auto rows = static_cast<std::size_t>(steps.rows());
  const std::vector<FittedValues> members{
      {std::vector<double>(rows, 1), std::vector<double>(rows, 10)},
      {std::vector<double>(rows, 3), std::vector<double>(rows, 30)}};
  const std::vector<std::vector<std::int64_t>> drawn{{0, 0, 1}, {1, 1, 2}};
  const FittedValues made = unseen_values(steps, members, drawn);
  const double wanted[] = {3, 2, 1}; // both networks were trained on episode 1
  for (std::int64_t i = 0; i < steps.episodes(); ++i)
    for (const std::int64_t row : {steps.first_row(i), steps.last_row(i)}) {
      CHECK(made.policy[static_cast<std::size_t>(row)] == wanted[i]);
      CHECK(made.recorded[static_cast<std::size_t>(row)] == 10 * wanted[i]);
    }
}

TEST_CASE("Rows, times and steps of recorded episodes are numbered consecutively") {
  const RecordedSteps steps = corridor(3, 0.5, 2);
  CHECK(steps.rows() == steps.steps() + 3);
  CHECK(steps.first_row(1) == steps.last_row(0) + 1);
  CHECK(steps.time()[steps.first_row(1)].item<float>() == 0);
  CHECK(steps.episode()[steps.last_row(2)].item<std::int64_t>() == 2);
  CHECK(steps.reward()[0].item<float>() == -1);
  CHECK(steps.reward()[steps.last_row(0)].item<float>() == 0);
  CHECK(steps.longest() <= kSteps);
  const std::vector<double> sums = steps.returns(1);
  CHECK(sums[0] == -static_cast<double>(steps.last_row(0)));
  const at::Tensor one_hot = encoded_actions(steps.action(), steps.transitions());
  CHECK(one_hot.size(1) == 2);
  CHECK(one_hot.sum().item<float>() == static_cast<float>(steps.rows()));
}

TEST_CASE("The share of actions that were never recorded is measured") {
  const RecordedSteps both = corridor(100, 0.5, 3);
  Walker left(0);
  const ActionCoverage known = action_coverage(both, RecordedPolicy(both, left).actions(), 1);
  CHECK(*known.agreement == doctest::Approx(0.5).epsilon(0.1));
  CHECK_FALSE(known.distance);
  CHECK(*known.outside < 0.1);
  const RecordedSteps right = corridor(100, 1, 3);
  const ActionCoverage unknown = action_coverage(right, RecordedPolicy(right, left).actions(), 1);
  CHECK(*unknown.agreement == 0);
  CHECK(*unknown.outside > 0.9);
  const RecordedSteps single = corridor(1, 1, 3);
  CHECK_FALSE(action_coverage(single, RecordedPolicy(single, left).actions(), 1).outside);
}

TEST_CASE("Recordings and options that do not allow an evaluation are refused") {
  const RecordedSteps steps = corridor(5, 0, 4);
  CHECK_THROWS_AS(RecordedSteps({}, corridor_spec()), std::invalid_argument);
  replay::Episode lost(replay::recording_of(corridor_spec()));
  lost.begin(seen_at(0));
  const float third = 2; // of two choices
  lost.append({&third, 1}, -1, 1, seen_at(1));
  CHECK_THROWS_WITH_AS(RecordedSteps({lost}, corridor_spec()),
                       doctest::Contains("a recorded choice is not in 0 to 1"),
                       std::invalid_argument);
  Walker left(0);
  const at::Tensor actions = RecordedPolicy(steps, left).actions();
  CHECK_THROWS_WITH_AS(
      fitted_values(steps, {{&actions, 1}}, all_episodes(steps), {.time_limit = 5}),
      doctest::Contains("has 12 steps, but the environment cuts them at 5"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(fitted_values(steps, {{&actions, 1}}, all_episodes(steps), {.discount = 1}),
                       doctest::Contains("--discount below 1"), std::invalid_argument);
}

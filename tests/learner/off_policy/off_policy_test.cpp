// What recorded episodes say of a policy that did not play them.
#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "env/random.hpp"
#include "learner/off_policy/action_coverage.hpp"
#include "learner/off_policy/fitted_evaluation.hpp"
#include "learner/replicas/replica_threads.hpp"

using namespace troupe;
using namespace troupe::learner;

namespace {

constexpr int kPlaces = 6;          // of the corridor; the last one ends an episode
constexpr std::int64_t kSteps = 12; // after which an episode is cut
constexpr double kDiscount = 0.9;

/// A corridor: each step costs 1, choice 1 goes right, choice 0 left.
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

/// Episodes of a walker that goes right with this probability.
RecordedSteps corridor(int episodes, double right, std::uint64_t seed) {
  env::Random random(seed);
  std::vector<replay::Episode> made;
  for (int i = 0; i < episodes; ++i) {
    replay::Episode episode(replay::recording_of(corridor_spec()));
    int place = static_cast<int>(random.bits() % (kPlaces - 1));
    episode.begin(seen_at(place));
    while (place < kPlaces - 1 && episode.steps() < kSteps) {
      const int choice = random.uniform() < right ? 1 : 0;
      place = next_place(place, choice);
      const float action = static_cast<float>(choice);
      episode.append({&action, 1}, -1, place == kPlaces - 1 ? 0.F : 1.F, seen_at(place));
    }
    made.push_back(episode);
  }
  return {std::move(made), corridor_spec()};
}

/// Always the same choice.
class Walker : public Policy {
public:
  explicit Walker(float choice, std::int64_t memory = 0) : choice_(choice), memory_(memory) {}
  std::int64_t parameter_count() const override { return 0; }
  std::int64_t state_size() const override { return memory_; }
  void load(std::span<const float>) override {}
  using Policy::act;
  void act(const Observations&, std::span<float> actions) override {
    std::ranges::fill(actions, choice_);
  }

private:
  float choice_;
  std::int64_t memory_;
};

/// Of a walker that always goes right or left, from this row on.
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

/// Random numbers in [-1, 1] one after another, and uniform guesses: a step costs the square of
/// what the guess is off.
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

/// Guesses a part of the number that it sees.
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

/// A number's mean square is 1/3.
double mean_guess(double part) {
  return -(1 - part) * (1 - part) / 3 * (1 - std::pow(kDiscount, kSteps)) / (1 - kDiscount);
}

std::vector<double> estimated(const RecordedSteps& steps, const at::Tensor& actions,
                              std::int64_t updates) {
  prepare_compute_thread(1); // a team of threads would only wait for each other
  return fitted_values(steps, actions, all_episodes(steps),
                       {.layers = {32, 32},
                        .batch_size = 64,
                        .updates = updates,
                        .discount = kDiscount,
                        .time_limit = kSteps});
}

} // namespace

TEST_CASE("values of both ways through a corridor are found from random walks, cut ones too") {
  const RecordedSteps steps = corridor(150, 0.5, 1);
  for (const bool right : {true, false}) {
    CAPTURE(right);
    Walker walker(right ? 1.F : 0.F);
    const std::vector<double> values = estimated(steps, steps.actions_of(walker), 2000);
    double error = 0;
    for (std::int64_t i = 0; i < steps.episodes(); ++i)
      error = std::max(error, std::abs(values[static_cast<std::size_t>(i)]
                                       - true_value(steps, steps.first_row(i), right)));
    CHECK(error < 0.35); // the values reach from -1 to -7.2
  }
}

TEST_CASE("values of continuous actions are found from uniform ones, and are the same each time") {
  const RecordedSteps steps = guesses(150, 5);
  for (const float part : {1.F, -1.F}) {
    CAPTURE(part);
    Guesser guesser(part);
    const at::Tensor actions = steps.actions_of(guesser);
    const std::vector<double> values = estimated(steps, actions, 2000);
    double sum = 0;
    for (const double value : values)
      sum += value / static_cast<double>(values.size());
    CHECK(sum == doctest::Approx(mean_guess(part)).epsilon(0.05).scale(5));
    CHECK(estimated(steps, actions, 50) == estimated(steps, actions, 50));
  }
}

TEST_CASE("rows, times and steps of recorded episodes are numbered one after another") {
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

TEST_CASE("actions that nobody recorded are told apart from recorded ones") {
  const RecordedSteps both = corridor(100, 0.5, 3);
  Walker left(0);
  const ActionCoverage known = action_coverage(both, both.actions_of(left), 1);
  CHECK(*known.agreement == doctest::Approx(0.5).epsilon(0.1));
  CHECK_FALSE(known.distance);
  CHECK(*known.outside < 0.1);
  const RecordedSteps right = corridor(100, 1, 3);
  const ActionCoverage unknown = action_coverage(right, right.actions_of(left), 1);
  CHECK(*unknown.agreement == 0);
  CHECK(*unknown.outside > 0.9);
  CHECK_FALSE(action_coverage(corridor(1, 1, 3), corridor(1, 1, 3).actions_of(left), 1).outside);
}

TEST_CASE("what cannot be evaluated on a recording is refused") {
  const RecordedSteps steps = corridor(5, 0, 4);
  Walker remembering(0, 8);
  CHECK_THROWS_WITH_AS(steps.actions_of(remembering), doctest::Contains("memory"),
                       std::invalid_argument);
  CHECK_THROWS_AS(RecordedSteps({}, corridor_spec()), std::invalid_argument);
  Walker left(0);
  const at::Tensor actions = steps.actions_of(left);
  CHECK_THROWS_WITH_AS(fitted_values(steps, actions, all_episodes(steps), {.time_limit = 5}),
                       doctest::Contains("has 12 steps, but the environment cuts them at 5"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(fitted_values(steps, actions, all_episodes(steps), {.discount = 1}),
                       doctest::Contains("--discount below 1"), std::invalid_argument);
}

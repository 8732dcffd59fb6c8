// Importance sampling on cases that are calculated by hand.
#include "learner/off_policy/importance_sampling.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <doctest/doctest.h>

using namespace troupe::learner;

namespace {

constexpr double kDiscount = 0.5;
constexpr double kNever = -std::numeric_limits<double>::infinity();

std::vector<std::size_t> all(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Two steps in places 0 and 1, with choice 0 or 1 and reward 1 + choice + 2 * place. Choice 1 ends
/// the episode.
struct Game {
  double behaviour[2] = {0.5, 0.25}; // probabilities of choice 1 in the two places
  double target[2] = {0.8, 0.6};

  static double reward(int place, int choice) { return 1 + choice + 2 * place; }
  static double chance(const double (&of)[2], int place, int choice) {
    return choice == 1 ? of[place] : 1 - of[place];
  }
  double value(int place) const {
    return place == 2 ? 0
                      : chance(target, place, 0) * quality(place, 0)
                            + chance(target, place, 1) * quality(place, 1);
  }
  double quality(int place, int choice) const {
    return reward(place, choice) + kDiscount * (choice == 1 ? 0 : value(place + 1));
  }

  WeighedStep step(int place, int choice, double wrong) const {
    return {.reward = reward(place, choice),
            .log_ratio = std::log(chance(target, place, choice) / chance(behaviour, place, choice)),
            .action_value = quality(place, choice) + wrong * (1 + place + 3 * choice),
            .value = value(place) + wrong * (1 + place + 3 * chance(target, place, 1)),
            .next_value =
                choice == 1 || place == 1 ? 0 : value(1) + wrong * (2 + 3 * chance(target, 1, 1))};
  }

  struct Outcome {
    WeighedEpisode episode;
    double probability = 0; // under the behaviour policy
  };
  /// Every episode that the behaviour policy can produce. `wrong`: error of the model.
  std::vector<Outcome> outcomes(double wrong) const {
    std::vector<Outcome> made{{{step(0, 1, wrong)}, behaviour[0]}};
    for (int choice = 0; choice < 2; ++choice)
      made.push_back({{step(0, 0, wrong), step(1, choice, wrong)},
                      (1 - behaviour[0]) * chance(behaviour, 1, choice)});
    return made;
  }
};

std::vector<WeighedEpisode> episodes_of(const std::vector<Game::Outcome>& outcomes) {
  std::vector<WeighedEpisode> made;
  for (const Game::Outcome& outcome : outcomes)
    made.push_back(outcome.episode);
  return made;
}

} // namespace

TEST_CASE("Over all possible episodes, the mean of the estimates is the target policy's return") {
  const Game game;
  // By hand: 0.8 * 2 + 0.2 * (1 + 0.5 * (0.6 * 4 + 0.4 * 3)) = 2.16
  REQUIRE(game.value(0) == doctest::Approx(2.16));
  for (const double wrong : {0.0, 0.7}) {
    CAPTURE(wrong);
    const auto outcomes = game.outcomes(wrong);
    const ImportanceSampling robust(episodes_of(outcomes), kDiscount);
    const ImportanceSampling plain(without_model(episodes_of(outcomes)), kDiscount);
    double mean_plain = 0, mean_robust = 0, mean_weight = 0;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const std::vector<std::size_t> one{i};
      mean_plain += outcomes[i].probability * plain.estimate(one).mean;
      mean_robust += outcomes[i].probability * robust.estimate(one).mean;
      const std::vector<WeighedEpisode> alone{outcomes[i].episode};
      mean_weight += outcomes[i].probability * ImportanceSampling(alone, kDiscount).weight().mean;
      if (wrong == 0) // a perfect model leaves no variance
        CHECK(robust.estimate(one).mean == doctest::Approx(2.16));
    }
    CHECK(mean_plain == doctest::Approx(2.16));
    CHECK(mean_robust == doctest::Approx(2.16));
    CHECK(mean_weight == doctest::Approx(1));
  }
}

TEST_CASE("A perfect model leaves no error, with and without self-normalised weights") {
  const Game game;
  const ImportanceSampling robust(episodes_of(game.outcomes(0)), kDiscount);
  for (const auto& drawn : {all(3), std::vector<std::size_t>{2, 2, 0, 1, 2}}) {
    CHECK(robust.estimate(drawn).mean == doctest::Approx(2.16));
    CHECK(robust.self_normalised(drawn).mean == doctest::Approx(2.16));
    CHECK(robust.estimate(drawn).error == doctest::Approx(0).scale(1));
    CHECK(robust.self_normalised(drawn).error == doctest::Approx(0).scale(1));
  }
}

TEST_CASE("Estimates match the formulas, and episodes that have ended keep their weight") {
  // Ratios 2 and then 0.5 with rewards 1 and 4; ratio 3 with reward 5, and the end.
  const std::vector<WeighedEpisode> episodes{
      {{.reward = 1, .log_ratio = std::log(2)}, {.reward = 4, .log_ratio = std::log(0.5)}},
      {{.reward = 5, .log_ratio = std::log(3)}}};
  const ImportanceSampling sampling(episodes, kDiscount);
  // (2 * 1 + 0.5 * 1 * 4 + 3 * 5) / 2
  CHECK(sampling.estimate(all(2)).mean == doctest::Approx(9.5));
  CHECK(sampling.estimate(all(2)).error == doctest::Approx(5.5)); // of 4 and 15
  // (2 * 1 + 3 * 5) / 5 + 0.5 * (1 * 4 + 3 * 0) / 4
  CHECK(sampling.self_normalised(all(2)).mean == doctest::Approx(3.4 + 0.5));
  CHECK(sampling.weight().mean == doctest::Approx(2));
  CHECK(sampling.effective_episodes() == doctest::Approx(16.0 / 10));
  const std::vector<std::size_t> first{0, 0};
  CHECK(sampling.self_normalised(first).mean == doctest::Approx(1 + 0.5 * 4));
}

TEST_CASE("Equal policies leave the recorded returns unchanged") {
  const std::vector<WeighedEpisode> episodes{{{.reward = 1}, {.reward = 2}}, {{.reward = 7}}};
  const ImportanceSampling sampling(episodes, kDiscount);
  CHECK(sampling.estimate(all(2)).mean == doctest::Approx(4.5));
  CHECK(sampling.self_normalised(all(2)).mean == doctest::Approx(4.5));
  CHECK(sampling.self_normalised(all(2)).error == doctest::Approx(sampling.estimate(all(2)).error));
  CHECK(sampling.effective_episodes() == doctest::Approx(2));
}

TEST_CASE("Self-normalised weights of hundreds of steps do not overflow") {
  const WeighedEpisode high(500, {.reward = 1, .log_ratio = 2});
  const ImportanceSampling sampling(std::vector<WeighedEpisode>{high, high}, kDiscount);
  CHECK(sampling.self_normalised(all(2)).mean == doctest::Approx(2));
  CHECK(sampling.effective_episodes() == doctest::Approx(2));
}

TEST_CASE(
    "Episodes with actions that the target policy never takes have weight 0, even if all do") {
  const std::vector<WeighedEpisode> one_of_two{{{.reward = 3, .log_ratio = kNever}},
                                               {{.reward = 2, .log_ratio = std::log(2)}}};
  const ImportanceSampling sampling(one_of_two, kDiscount);
  CHECK(sampling.estimate(all(2)).mean == doctest::Approx(2));
  CHECK(sampling.self_normalised(all(2)).mean == doctest::Approx(2));
  CHECK(sampling.effective_episodes() == doctest::Approx(1));
  const std::vector<WeighedEpisode> none{one_of_two[0], one_of_two[0]};
  const ImportanceSampling unknown(none, kDiscount);
  CHECK(unknown.effective_episodes() == 0);
  CHECK(unknown.self_normalised(all(2)).mean == 0);
}

TEST_CASE("The standard error of self-normalised estimates equals that of many trials") {
  const Game game;
  const auto outcomes = game.outcomes(0);
  const auto episodes = without_model(episodes_of(outcomes));
  constexpr std::size_t kEpisodes = 200, kTrials = 400;
  std::uint64_t state = 1;
  double sum = 0, squares = 0, errors = 0;
  for (std::size_t trial = 0; trial < kTrials; ++trial) {
    std::vector<WeighedEpisode> drawn;
    for (std::size_t i = 0; i < kEpisodes; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U; // Knuth's MMIX
      double left = static_cast<double>(state >> 11U) * 0x1.0p-53;
      std::size_t k = 0;
      while (k + 1 < outcomes.size() && (left -= outcomes[k].probability) >= 0)
        ++k;
      drawn.push_back(episodes[k]);
    }
    const EstimatedReturn made =
        ImportanceSampling(drawn, kDiscount).self_normalised(all(kEpisodes));
    sum += made.mean;
    squares += made.mean * made.mean;
    errors += made.error / kTrials;
  }
  const double mean = sum / kTrials;
  CHECK(mean == doctest::Approx(2.16).epsilon(0.005));
  CHECK(errors == doctest::Approx(std::sqrt(squares / kTrials - mean * mean)).epsilon(0.1));
}

TEST_CASE("No episodes, empty episodes and numbers that are not finite are refused") {
  const auto refused = [](const std::vector<WeighedEpisode>& episodes, const char* words) {
    CHECK_THROWS_WITH_AS(ImportanceSampling(episodes, kDiscount), doctest::Contains(words),
                         std::invalid_argument);
  };
  refused({}, "needs an episode");
  refused({{}}, "has no step");
  refused({{{.reward = NAN}}}, "not finite");
  refused({{{.reward = 1, .log_ratio = NAN}}}, "step 0 of recorded episode 0");
  refused({{{.reward = 1}, {.reward = 1, .log_ratio = INFINITY}}}, "step 1");
}

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "env/random.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/commands/training/recorded_estimates.hpp"
#include "learner/replicas/replica_threads.hpp"

namespace troupe::experiments {
namespace {

constexpr int kPlaces = 6;          // in a corridor; the last one ends an episode
constexpr std::int64_t kSteps = 12; // length at which an episode is cut off
constexpr double kDiscount = 0.95;
constexpr double kBehaviour = 0.5; // probability of a step to the right
constexpr double kTarget = 0.7;
constexpr int kTrials = 20; // per repetition

int next_place(int place, int choice) {
  return std::clamp(place + (choice == 1 ? 1 : -1), 0, kPlaces - 1);
}

/// Each step costs 1, or 2 at the left end.
double reward(int place) {
  return place == 0 ? -2 : -1;
}

/// The expected return from a place after `step` steps, by dynamic programming.
double value(int place, std::int64_t step) {
  if (place == kPlaces - 1 || step == kSteps)
    return 0;
  return reward(place)
         + kDiscount
               * (kTarget * value(next_place(place, 1), step + 1)
                  + (1 - kTarget) * value(next_place(place, 0), step + 1));
}

double truth() {
  double sum = 0;
  for (int place = 0; place < kPlaces - 1; ++place)
    sum += value(place, 0) / (kPlaces - 1);
  return sum;
}

replay::TransitionSpec transitions() {
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

learner::RecordedSteps recorded(int episodes, std::uint64_t seed) {
  env::Random random(seed);
  replay::RecordingSpec spec = replay::recording_of(transitions());
  spec.log_probability = true;
  std::vector<replay::Episode> made;
  for (int i = 0; i < episodes; ++i) {
    replay::Episode episode(spec);
    int place = static_cast<int>(random.bits() % (kPlaces - 1));
    episode.begin(seen_at(place));
    while (place < kPlaces - 1 && episode.steps() < kSteps) {
      const int choice = random.uniform() < kBehaviour ? 1 : 0;
      const auto action = static_cast<float>(choice);
      const auto cost = static_cast<float>(reward(place));
      place = next_place(place, choice);
      episode.append({&action, 1}, cost, place == kPlaces - 1 ? 0.F : 1.F, seen_at(place), {},
                     static_cast<float>(std::log(choice == 1 ? kBehaviour : 1 - kBehaviour)));
    }
    made.push_back(episode);
  }
  return {std::move(made), transitions()};
}

/// A policy that steps right with probability kTarget.
class Target : public learner::Policy {
public:
  std::int64_t parameter_count() const override { return 0; }
  void load(std::span<const float>) override {}
  void act(const learner::Observations&, std::span<float> actions) override {
    std::ranges::fill(actions, 1.0F);
  }
  void explore(const learner::Observations&, const learner::Exploration& exploration,
               std::span<float> actions) override {
    for (std::size_t i = 0; i < actions.size(); ++i)
      actions[i] = exploration.random[i]->uniform() < kTarget ? 1.F : 0.F;
  }
  bool has_density() const override { return true; }
  void log_probability(const learner::Observations&, const learner::Exploration&,
                       std::span<const float> actions, std::span<double> out) override {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = std::log(actions[i] == 1 ? kTarget : 1 - kTarget);
  }
};

/// The results of all trials of one estimator.
struct Trials {
  int count = 0;
  int hits = 0; // number of intervals that contain the true value
  double errors = 0;
  double squares = 0;
  double widths = 0;

  void add(double estimate, const Interval& interval, double truth) {
    ++count;
    hits += interval.low <= truth && truth <= interval.high ? 1 : 0;
    errors += estimate - truth;
    squares += (estimate - truth) * (estimate - truth);
    widths += interval.high - interval.low;
  }
};

} // namespace

/// Recordings of a corridor whose values are known: how often do the 95 % intervals contain the
/// true value? "range of the networks": the range of the means of five networks, each trained on
/// resampled episodes.
void bench_off_policy(const BenchOptions& options, const Report& report) {
  learner::prepare_compute_thread(1);
  const double wanted = truth();
  for (const std::int64_t updates : {100, 1000}) {
    constexpr int kEpisodes = 50;
    std::map<std::string, Trials> all;
    for (int trial = 0; trial < kTrials * options.repetitions; ++trial) {
      const auto seed = static_cast<std::uint64_t>(trial);
      const learner::RecordedSteps steps = recorded(kEpisodes, 1000 + seed);
      Target target;
      const RecordedEstimates made = estimate_on_recording(learner::RecordedPolicy(steps, target),
                                                           {.fit = {.layers = {32, 32},
                                                                    .batch_size = 64,
                                                                    .updates = updates,
                                                                    .discount = kDiscount,
                                                                    .time_limit = kSteps,
                                                                    .seed = seed},
                                                            .members = 5,
                                                            .explores = true},
                                                           {}, [] { return false; });
      const auto add = [&](const char* name, const Estimate& estimate) {
        all[name].add(estimate.value, estimate.interval, wanted);
      };
      add("fitted Q", made.fitted);
      const auto [least, most] = std::ranges::minmax(made.members);
      add("fitted Q, range of the networks", {made.fitted.value, {least, most}});
      if (!made.weighed)
        continue;
      add("importance sampling", made.weighed->plain);
      add("self-normalised", made.weighed->self_normalised);
      add("doubly robust", made.weighed->doubly_robust);
      add("self-normalised doubly robust", made.weighed->self_normalised_doubly_robust);
    }
    for (const auto& [name, trials] : all) {
      const double count = trials.count;
      const FigureConfig config{{"estimator", name},
                                {"episodes", std::to_string(kEpisodes)},
                                {"updates", std::to_string(updates)},
                                {"trials", std::to_string(trials.count)}};
      const auto tell = [&](const char* metric, double figure, const char* unit) {
        report_values(report, "off_policy", metric, unit, {figure}, config);
      };
      tell("intervals with the truth", 100 * trials.hits / count, "%");
      tell("bias", trials.errors / count, "of the return");
      tell("error", std::sqrt(trials.squares / count), "root of the mean square");
      tell("width of the interval", trials.widths / count, "of the return");
    }
  }
}

} // namespace troupe::experiments

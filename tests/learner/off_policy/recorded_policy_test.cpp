// What a policy with memory would do and return in episodes that it did not play.
#include "learner/off_policy/recorded_policy.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "env/random.hpp"
#include "learner/agents/impala/impala.hpp"
#include "learner/agents/r2d2/r2d2.hpp"
#include "learner/off_policy/fitted_members.hpp"
#include "learner/replicas/replica_threads.hpp"
#include "tests/doctest_torch.hpp"
#include "tests/learner/off_policy/weighed_returns.hpp"

using namespace troupe;
using namespace troupe::learner;

namespace {

constexpr std::int64_t kSteps = 3; // per episode
constexpr double kRight = 0.9;     // probability with which a policy makes its preferred choice

/// The first observation of an episode shows one of two cues. The others show nothing.
replay::TransitionSpec cue_spec() {
  return {
      .frame = {"cue", env::ElementType::float32, {2}}, .action_size = 1, .action_choices = {2}};
}

struct Moment {
  std::int64_t time = 0;
  int cue = 0;
  int last = 0; // the previous choice
  int choice = 0;
};
using Reward = std::function<bool(const Moment&)>; // whether the reward is 1 or 0

/// Uniform random choices in episodes of `steps(episode)` steps.
RecordedSteps recorded(int episodes, const Reward& reward,
                       const std::function<std::int64_t(int)>& steps = {}) {
  env::Random random(3);
  replay::RecordingSpec spec = replay::recording_of(cue_spec());
  spec.log_probability = true;
  std::vector<replay::Episode> made;
  for (int i = 0; i < episodes; ++i) {
    replay::Episode episode(spec);
    Moment now{.cue = static_cast<int>(random.bits() % 2)};
    float seen[2] = {now.cue == 0 ? 1.F : 0.F, now.cue == 1 ? 1.F : 0.F};
    episode.begin(std::as_bytes(std::span(seen)));
    std::ranges::fill(seen, 0.F);
    const std::int64_t count = steps ? steps(i) : kSteps;
    for (; now.time < count; ++now.time) {
      now.choice = static_cast<int>(random.bits() % 2);
      const auto action = static_cast<float>(now.choice);
      episode.append({&action, 1}, reward(now) ? 1 : 0, now.time + 1 == count ? 0.F : 1.F,
                     std::as_bytes(std::span(seen)), {}, static_cast<float>(std::log(0.5)));
      now.last = now.choice;
    }
    made.push_back(episode);
  }
  return {std::move(made), cue_spec()};
}

/// Makes the choice in its memory with probability kRight.
class Remembering : public Policy {
public:
  std::int64_t parameter_count() const override { return 0; }
  std::int64_t state_size() const override { return 1; }
  void load(std::span<const float>) override {}
  using Policy::act;
  void act(const Observations& observations, std::span<float> actions) override {
    choose(observations, actions);
    remember(observations, actions);
  }
  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override {
    choose(observations, actions);
    for (std::size_t i = 0; i < actions.size(); ++i)
      if (exploration.random[i]->uniform() >= kRight)
        actions[i] = 1 - actions[i];
    remember(observations, actions);
  }
  bool has_density() const override { return true; }
  void log_probability(const Observations& observations, const Exploration&,
                       std::span<const float> actions, std::span<double> out) override {
    std::vector<float> wanted(actions.size());
    choose(observations, wanted);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = std::log(actions[i] == wanted[i] ? kRight : 1 - kRight);
    remember(observations, actions);
  }

protected:
  virtual void choose(const Observations& observations, std::span<float> actions) = 0;
  virtual void remember(const Observations& observations, std::span<const float> actions) = 0;
};

/// Remembers the number of the cue plus 1, and prefers that choice.
class CueChooser : public Remembering {
  void choose(const Observations& observations, std::span<float> actions) override {
    for (std::size_t i = 0; i < actions.size(); ++i)
      actions[i] = std::max(observations.state[i] - 1, 0.F);
  }
  void remember(const Observations& observations, std::span<const float> actions) override {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      float seen[2];
      std::memcpy(seen, observations.frames[i], sizeof seen);
      if (seen[0] + seen[1] > 0)
        observations.state[i] = 1 + seen[1];
    }
  }
};

/// Remembers its last choice plus 1, and prefers the other choice.
class Alternating : public Remembering {
public:
  void follow(const Observations& observations, std::span<const float> actions) override {
    remember(observations, actions);
  }

private:
  void choose(const Observations& observations, std::span<float> actions) override {
    for (std::size_t i = 0; i < actions.size(); ++i)
      actions[i] = observations.state[i] == 1 ? 1.F : 0.F;
  }
  void remember(const Observations& observations, std::span<const float> actions) override {
    for (std::size_t i = 0; i < actions.size(); ++i)
      observations.state[i] = actions[i] + 1;
  }
};

FittedEvaluation small_fit() {
  return {.layers = {32, 32},
          .batch_size = 64,
          .updates = 1000,
          .discount = kDiscount,
          .time_limit = kSteps};
}

/// Checks that all estimates are near `truth`, except those of networks that do not see the memory,
/// which must be near `without`.
void check_estimates(const RecordedSteps& steps, Policy& policy, double truth, double without) {
  prepare_compute_thread(1); // several threads would only wait for each other
  const RecordedPolicy along(steps, policy);
  const FittedMembers fitted =
      fit_members(along, {.fit = small_fit(), .members = 2, .explores = true});
  for (const double mean : fitted.means)
    CHECK(mean == doctest::Approx(truth).epsilon(0.05));
  const auto target = along.log_probabilities();
  const WeighedReturns returns(weighed_episodes(steps, target, fitted.unseen),
                               weighed_episodes(steps, target));
  for (const EstimatedReturn& made : returns.estimates()) {
    CAPTURE(made.mean);
    CHECK(std::abs(made.mean - truth) < 3 * made.error);
    CHECK(made.mean - 3 * made.error > without);
  }
  CHECK(std::abs(returns.plain.weight().mean - 1) < 4 * returns.plain.weight().error);
  std::vector<std::int64_t> learnt(returns.all.begin(), returns.all.end());
  ActingRandom random{std::mt19937_64(5)};
  std::vector<at::Tensor> draws;
  for (int i = 0; i < 4; ++i)
    draws.push_back(along.actions(&random));
  const FittedValues blind = fitted_values(steps, {draws}, learnt, small_fit());
  double mean = 0;
  for (const std::int64_t episode : learnt)
    mean += blind.policy[static_cast<std::size_t>(steps.first_row(episode))]
            / static_cast<double>(steps.episodes());
  CHECK(mean == doctest::Approx(without).epsilon(0.1));
}

/// Episodes of random observations, played by an untrained policy with its exploration.
RecordedSteps played(Policy& policy, const replay::TransitionSpec& transitions) {
  env::Random random(8);
  ActingRandom choices{std::mt19937_64(9)};
  ActingRandom* const source = &choices;
  replay::RecordingSpec spec = replay::recording_of(transitions);
  spec.log_probability = true;
  std::vector<replay::Episode> made;
  for (std::int64_t i = 0; i < 20; ++i) {
    replay::Episode episode(spec);
    std::vector<float> state(static_cast<std::size_t>(policy.state_size()));
    float seen[2];
    const auto observe = [&] {
      std::ranges::generate(seen, [&] { return static_cast<float>(random.uniform(-3, 3)); });
      return std::as_bytes(std::span(seen));
    };
    episode.begin(observe());
    while (episode.steps() < 5 + i % 3) {
      const std::byte* frame = std::as_bytes(std::span(seen)).data();
      std::vector<float> before = state;
      std::vector<float> action(static_cast<std::size_t>(transitions.action_size));
      Observations observations{
          .frames = {&frame, 1}, .frame_bytes = sizeof seen, .batch = 1, .state = state};
      policy.explore(observations, {.random = {&source, 1}}, action);
      double logarithm = 0;
      observations.state = before;
      policy.log_probability(observations, {}, action, {&logarithm, 1});
      episode.append(action, 0, 1, observe(), {}, static_cast<float>(logarithm));
    }
    made.push_back(episode);
  }
  return {std::move(made), transitions};
}

} // namespace

TEST_CASE("The return of a policy that remembers a cue is estimated from episodes recorded without "
          "memory") {
  const auto late = [](const Moment& now) { return now.time == 2 && now.choice == now.cue; };
  CueChooser policy;
  check_estimates(recorded(1000, late), policy, kRight * kDiscount * kDiscount,
                  0.5 * kDiscount * kDiscount);
}

TEST_CASE(
    "The return of a policy that remembers its last choice is estimated from another's choices") {
  const auto changed = [](const Moment& now) { return now.time > 0 && now.choice != now.last; };
  Alternating policy;
  const double sum = kDiscount + kDiscount * kDiscount;
  check_estimates(recorded(1000, changed), policy, kRight * sum, 0.5 * sum);
}

TEST_CASE("A policy remembers the recorded choices of each episode of any length") {
  const RecordedSteps steps = recorded(
      1500, [](const Moment&) { return false; }, [](int i) { return 1 + i % 5; });
  Alternating policy;
  const RecordedPolicy along(steps, policy);
  const at::Tensor before = at::cat({at::zeros({1, 1}), steps.action().slice(0, 0, -1) + 1});
  CHECK(at::equal(along.memory(), before.masked_fill(steps.time().eq(0).unsqueeze(1), 0)));
  const at::Tensor kept = along.memory().clone();
  along.actions();
  along.log_probabilities();
  CHECK(at::equal(along.memory(), kept));
}

TEST_CASE("Agents with a memory reproduce the log probabilities with which they acted") {
  const R2d2Config r2d2{
      .layers = {12}, .lstm = 8, .epsilon = {.probability = {.start = 0.4, .end = 0.4}}};
  const auto choices = cue_spec();
  auto numbers = choices;
  numbers.action_choices = {};
  numbers.action_size = 2;
  const ImpalaConfig impala{.layers = {12}, .lstm = 8};
  const std::pair<AgentPtr, replay::TransitionSpec> cases[] = {
      {make_r2d2_agent(r2d2), choices},
      {make_impala_agent(impala), choices},
      {make_impala_agent(impala), numbers}};
  prepare_compute_thread(1);
  for (const auto& [agent, transitions] : cases) {
    const auto stored = stored_by(*agent, transitions);
    const auto replica = agent->make_replica(stored);
    ReplicaContext context(nullptr, 3);
    replica->build(context);
    const auto policy = agent->make_policy(stored);
    const at::Tensor flat = replica->policy_parameters() * 3; // so that the memory matters
    policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
    const RecordedSteps steps = played(*policy, transitions);
    const auto found = RecordedPolicy(steps, *policy).log_probabilities();
    const float* recorded = steps.log_probability().const_data_ptr<float>();
    double error = 0;
    for (std::size_t row = 0; row < found.size(); ++row)
      error = std::max(error, std::abs(found[row] - static_cast<double>(recorded[row])));
    CHECK(error < 1e-4);
  }
}

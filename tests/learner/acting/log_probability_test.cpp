// The probability with which a policy chooses an action: it sums to one, and matches the actions
// that the policy draws.
#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include <ATen/Parallel.h>

#include "learner/acting/action_density.hpp"
#include "learner/acting/best_actions.hpp"
#include "learner/acting/uniform_actions.hpp"
#include "tests/learner/agents/small_agent.hpp"
#include "tests/learner/replicas.hpp"

using namespace troupe;
using namespace troupe::learner;

namespace {

constexpr std::int64_t kRows = 4000; // grid points, and draws

replay::TransitionSpec one_number(const AgentKind& kind) {
  replay::TransitionSpec transitions = small_transitions(kind);
  if (kind.actions != ActionKind::choice)
    transitions.action_size = 1;
  return transitions;
}

/// The midpoint of the i-th of kRows equal parts of [-1, 1].
float midpoint(std::size_t i) {
  return static_cast<float>((2.0 * static_cast<double>(i) + 1) / kRows - 1);
}

/// A policy with its agent's initial parameters, and one observation repeated over many rows.
struct Seen {
  explicit Seen(const AgentKind& kind, const std::string& more = "")
      : transitions(one_number(kind)),
        observation(transitions.observation().bytes()),
        randoms(kRows) {
    const AgentPtr agent = small_agent(kind, more);
    at::set_num_threads(1); // tests run in parallel
    ReplicaContext context(nullptr, 5);
    const auto replica = agent->make_replica(transitions);
    replica->build(context);
    const at::Tensor flat = replica->policy_parameters();
    policy = agent->make_policy(transitions);
    policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
    for (std::size_t i = 0; i < randoms.size(); ++i) {
      randoms[i].generator.seed(i);
      pointers.push_back(&randoms[i]);
    }
    frames.assign(randoms.size(), observation.data());
    states.resize(randoms.size() * static_cast<std::size_t>(policy->state_size()));
  }
  Seen(const Seen&) = delete;

  Observations rows() {
    std::ranges::fill(states, 0.0F);
    return {.frames = frames,
            .frame_bytes = transitions.frame.bytes(),
            .batch = kRows,
            .state = states};
  }
  std::vector<float> drawn() {
    std::vector<float> actions(kRows);
    policy->explore(rows(), {.steps = 1000, .random = pointers}, actions);
    for (float& action : actions)
      if (transitions.action_choices.empty())
        action = std::clamp(action, -1.0F, 1.0F);
    return actions;
  }
  std::vector<double> probabilities(std::span<const float> actions) {
    std::vector<double> out(kRows);
    policy->log_probability(rows(), {.steps = 1000, .random = {}}, actions, out);
    for (double& each : out)
      each = std::exp(each);
    return out;
  }

  replay::TransitionSpec transitions;
  std::vector<std::byte> observation;
  std::vector<ActingRandom> randoms;
  std::vector<ActingRandom*> pointers;
  std::vector<const std::byte*> frames;
  std::vector<float> states;
  std::unique_ptr<Policy> policy;
};

double part(const std::vector<float>& actions, float least) {
  return static_cast<double>(std::ranges::count_if(actions, [&](float x) { return x >= least; }))
         / static_cast<double>(actions.size());
}

} // namespace

TEST_CASE(
    "Probabilities of every agent's actions sum to 1 and match the frequencies of its draws") {
  std::set<std::string> without;
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    Seen seen(kind);
    const std::vector<float> drawn = seen.drawn();
    std::vector<float> asked(kRows);
    if (!seen.policy->has_density()) {
      without.insert(kind.name);
      CHECK_THROWS_WITH_AS(seen.probabilities(asked), doctest::Contains("has_density"),
                           std::logic_error);
      continue;
    }
    if (kind.actions == ActionKind::choice) {
      for (std::size_t i = 0; i < 4; ++i)
        asked[i] = static_cast<float>(i);
      const std::vector<double> probability = seen.probabilities(asked);
      CHECK(probability[0] + probability[1] + probability[2] + probability[3]
            == doctest::Approx(1));
      for (std::size_t i = 0; i < 4; ++i)
        CHECK(static_cast<double>(std::ranges::count(drawn, asked[i])) / kRows
              == doctest::Approx(probability[i]).epsilon(0.03).scale(1));
      continue;
    }
    std::ranges::fill(asked, 1.0F);
    asked[0] = -1;
    const std::vector<double> bounds = seen.probabilities(asked);
    for (std::size_t i = 0; i < asked.size(); ++i)
      asked[i] = midpoint(i);
    const std::vector<double> density = seen.probabilities(asked);
    double inside = 0, above = bounds[1];
    for (std::size_t i = 0; i < density.size(); ++i) {
      inside += density[i] * 2 / kRows;
      above += asked[i] >= 0.5F ? density[i] * 2 / kRows : 0;
    }
    CHECK(bounds[0] + inside + bounds[1] == doctest::Approx(1).epsilon(2e-3));
    CHECK(part(drawn, 0.5F) == doctest::Approx(above).epsilon(0.03).scale(1));
    CHECK(part(drawn, 1.0F) == doctest::Approx(bounds[1]).epsilon(0.03).scale(1));
  }
  CHECK(without == std::set<std::string>{"bc"}); // it does not explore
}

TEST_CASE("Draws that depend on earlier draws have no probabilities of their own") {
  for (const auto& [agent, keys] : {std::pair{"td3", "noise: \"ornstein_uhlenbeck\""},
                                    {"td3", "noise: \"parameters\""},
                                    {"td3", "noise_hold: 4"},
                                    {"td3", "noise_end: 0"},
                                    {"dqn", "epsilon_hold: 4"},
                                    {"dqn", "noisy: true"}}) {
    CAPTURE(keys);
    CHECK_FALSE(Seen(*find_agent(agent), keys).policy->has_density());
  }
}

TEST_CASE("A density is the derivative of the cumulative probability") {
  const double mean = 0.4, deviation = 0.7;
  const auto below = [&](double x) { // the normal distribution function
    return 0.5 * std::erfc((mean - x) / deviation / std::numbers::sqrt2);
  };
  const double step = 1e-5;
  for (const double action : {-0.9, -0.2, 0.4, 0.99}) {
    CAPTURE(action);
    CHECK(std::exp(log_clipped_normal(mean, deviation, action))
          == doctest::Approx((below(action + step) - below(action - step)) / (2 * step)));
    CHECK(std::exp(log_squashed_normal(mean, deviation, action))
          == doctest::Approx((below(std::atanh(action + step)) - below(std::atanh(action - step)))
                             / (2 * step)));
  }
  CHECK(std::exp(log_clipped_normal(mean, deviation, -1)) == doctest::Approx(below(-1)));
  CHECK(std::exp(log_clipped_normal(mean, deviation, 1)) == doctest::Approx(1 - below(1)));
  CHECK(log_squashed_normal(8, 1, 1) == doctest::Approx(std::log(0.156)).epsilon(0.01));
  // Far from the bound, erfc() underflows to 0, and the logarithm continues without a jump.
  CHECK(log_clipped_normal(-1, 0.01, 1) == doctest::Approx(-20006.22).epsilon(1e-6));
  const double near = log_clipped_normal(1 - 29.999, 1, 1);
  CHECK(log_clipped_normal(1 - 30.001, 1, 1) - near == doctest::Approx(-0.002 * 30).epsilon(0.01));
}

TEST_CASE("Best choices have probability 1, and best continuous actions have no density") {
  Seen chooses(*find_agent("dqn"));
  const replay::TransitionSpec choice = chooses.transitions;
  std::vector<float> actions(kRows);
  chooses.policy->act(chooses.rows(), actions);
  actions[1] = actions[0] == 0 ? 1 : 0;
  chooses.policy = std::make_unique<BestActions>(std::move(chooses.policy), choice);
  REQUIRE(chooses.policy->has_density());
  const std::vector<double> probability = chooses.probabilities(actions);
  CHECK(probability[0] == 1);
  CHECK(probability[1] == 0);
  Seen continuous(*find_agent("td3"));
  CHECK_FALSE(BestActions(std::move(continuous.policy), continuous.transitions).has_density());
}

TEST_CASE(
    "Uniform actions have equal probabilities for choices and density 1/2 for continuous values") {
  CHECK(log_uniform({.frame = {}, .action_size = 2, .action_choices = {0, 4}})
        == doctest::Approx(std::log(0.5 * 0.25)));
  CHECK(log_uniform({.frame = {}, .action_size = 3}) == doctest::Approx(-3 * std::log(2)));
}

#include "tests/doctest_torch.hpp"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>

#include "env/make/make.hpp"
#include "learner/acting/collector.hpp"
#include "learner/acting/transition_spec.hpp"
#include "learner/agents/parts/parameter_noise.hpp"
#include "tests/learner/agents/small_agent.hpp"

using namespace troupe;
using namespace troupe::learner;

namespace {

/// A network with 3 inputs, 2 actions and random parameters, and a batch of environments.
struct NoisyLanes {
  explicit NoisyLanes(std::size_t rows, std::uint64_t seed = 7) : batch(rows), first(rows) {
    network.declare(layout, "policy");
    flat = at::zeros({layout.count()}, at::kFloat);
    at::Generator generator = at::detail::createCPUGenerator(3);
    network.initialise(layout, flat, Mlp::Weights::uniform, generator);
    randoms.resize(rows);
    for (ActingRandom& random : randoms) {
      random.generator.seed(seed++);
      pointers.push_back(&random);
    }
    x.resize(3 * rows);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = std::sin(static_cast<float>(i));
  }
  NoisyLanes(const NoisyLanes&) = delete;

  std::unique_ptr<ActionNoise> make(const ActionNoiseConfig& config) {
    auto noise = make_action_noise(config, network);
    noise->load(network.bind(layout, flat));
    return noise;
  }
  /// Actions for x with exploration noise. `begins`: an episode begins in every row.
  std::vector<float> explored(ActionNoise& noise, bool begins, std::int64_t steps = 0) {
    std::fill(first.begin(), first.end(), begins ? 1 : 0);
    std::vector<float> actions = greedy();
    noise.apply(x.data(), {.steps = steps, .random = pointers, .first = first}, actions);
    return actions;
  }
  std::vector<float> greedy() {
    ActingMlp acting(network);
    acting.load(network.bind(layout, flat));
    const float* raw = acting.forward(x.data(), static_cast<std::int64_t>(batch));
    std::vector<float> actions;
    for (std::size_t i = 0; i < 2 * batch; ++i)
      actions.push_back(std::tanh(raw[i]));
    return actions;
  }

  std::size_t batch;
  Mlp network{3, {{"hidden", 8, Activation::relu}, {"output", 2, Activation::none}}};
  ParameterLayout layout;
  at::Tensor flat;
  std::vector<float> x;
  std::vector<ActingRandom> randoms;
  std::vector<ActingRandom*> pointers;
  std::vector<std::uint8_t> first;
};

ActionNoiseConfig noise_of(const std::string& kind, double start, double end,
                           std::int64_t steps = 1) {
  return {.kind = kind, .scale = {{.start = start, .end = end, .steps = steps}}};
}

double action_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double square = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    square += std::pow(a[i] - b[i], 2) / static_cast<double>(a.size());
  return std::sqrt(square);
}

} // namespace

TEST_CASE("Ornstein-Uhlenbeck noise starts small and grows to the scheduled deviation") {
  NoisyLanes lanes(4000);
  const auto noise = lanes.make(noise_of("ornstein_uhlenbeck", 0.1, 0.05, 100));
  const auto greedy = lanes.greedy();
  const auto begin = lanes.explored(*noise, true);
  CHECK(action_distance(begin, greedy)
        == doctest::Approx(0.1 * std::sqrt(1 - 0.85 * 0.85)).epsilon(0.05));
  std::vector<float> before = begin;
  std::vector<float> now = begin;
  for (int i = 0; i < 40; ++i) {
    before = now;
    now = lanes.explored(*noise, false);
  }
  CHECK(action_distance(now, greedy) == doctest::Approx(0.1).epsilon(0.05));
  double product = 0; // of the noise of consecutive steps
  for (std::size_t i = 0; i < now.size(); ++i)
    product += (now[i] - greedy[i]) * (before[i] - greedy[i]) / static_cast<double>(now.size());
  CHECK(product / 0.01 == doctest::Approx(0.85).epsilon(0.05));
  CHECK(action_distance(lanes.explored(*noise, false, 1000), greedy)
        == doctest::Approx(0.05).epsilon(0.05));
  CHECK(action_distance(lanes.explored(*noise, true), greedy) < 0.06); // a new episode
}

TEST_CASE("With parameter noise, the action within an episode is a function of the observation") {
  NoisyLanes lanes(3);
  const auto noise = lanes.make(noise_of("parameters", 0.2, 0.2));
  const auto one = lanes.explored(*noise, true);
  CHECK(lanes.explored(*noise, false) == one);
  CHECK(action_distance(one, lanes.greedy()) > 0);
  const auto other = lanes.explored(*noise, true);
  CHECK(action_distance(one, other) > 0);
  lanes.flat.mul_(1.5F); // the same noise, added to other parameters
  noise->load(lanes.network.bind(lanes.layout, lanes.flat));
  const auto moved = lanes.explored(*noise, false);
  CHECK(action_distance(moved, other) > 0);
  lanes.flat.div_(1.5F);
  noise->load(lanes.network.bind(lanes.layout, lanes.flat));
  CHECK(action_distance(lanes.explored(*noise, false), other) < 1e-6);
}

TEST_CASE("The scale of parameter noise adapts to the scheduled distance of the actions") {
  for (const double wanted : {0.05, 0.3}) {
    CAPTURE(wanted);
    NoisyLanes lanes(50);
    ParameterNoise noise({.start = wanted, .end = 0, .steps = 1'000'000}, lanes.network);
    noise.load(lanes.network.bind(lanes.layout, lanes.flat));
    double mean = 0;
    for (int i = 0; i < 4000; ++i) {
      const auto actions = lanes.explored(noise, i % 20 == 0);
      if (i >= 3000)
        mean += action_distance(actions, lanes.greedy()) / 1000;
    }
    CHECK(mean == doctest::Approx(wanted).epsilon(0.1));
    const double scale = noise.scale();
    CHECK(lanes.explored(noise, false, 1'000'000) == lanes.greedy()); // the end of the schedule
    CHECK(noise.scale() == scale);
  }
}

TEST_CASE("Action noise continues from its saved state bit for bit") {
  for (const std::string kind : {"gaussian", "ornstein_uhlenbeck", "parameters"}) {
    CAPTURE(kind);
    NoisyLanes lanes(3);
    const auto noise = lanes.make(noise_of(kind, 0.2, 0.2));
    for (int i = 0; i < 37; ++i)
      lanes.explored(*noise, i % 11 == 0);
    std::vector<std::byte> saved;
    noise->save_state(saved);
    CHECK(saved.empty() == (kind == "gaussian"));
    NoisyLanes resumed(3, 99);
    for (std::size_t i = 0; i < 3; ++i)
      resumed.randoms[i] = lanes.randoms[i];
    const auto other = resumed.make(noise_of(kind, 0.2, 0.2));
    CHECK(other->load_state(saved).empty());
    for (int i = 0; i < 37; ++i)
      CHECK(resumed.explored(*other, i % 11 == 7) == lanes.explored(*noise, i % 11 == 7));
    if (saved.empty())
      continue;
    saved.pop_back();
    CHECK_THROWS_AS(other->load_state(saved), std::invalid_argument);
  }
}

TEST_CASE("A collector with correlated noise continues from its saved state") {
  for (const AgentKind& kind : agent_kinds()) {
    if (kind.options->FindFieldByName("noise_reversion") == nullptr)
      continue;
    for (const std::string noise : {"ornstein_uhlenbeck", "parameters"}) {
      CAPTURE(kind.name);
      CAPTURE(noise);
      const AgentPtr agent = small_agent(kind, "noise_start: 0.5 noise: \"" + noise + "\"");
      const auto environment = [](int) {
        return env::make_environment({.task = "Pendulum-v1", .time_limit = 20});
      };
      const auto transitions = transition_spec(environment(0)->spec(), 1, .9);
      std::vector<float> parameters(
          static_cast<std::size_t>(agent->make_policy(transitions)->parameter_count()), 0.01F);
      const auto make = [&] {
        auto made =
            std::make_unique<Collector>(CollectorConfig{.total_lanes = 3, .environments = 3},
                                        environment, agent->make_policy(transitions), transitions);
        made->load_parameters(1, parameters);
        return made;
      };
      const auto play = [](Collector& collector, int steps) { // the actions of the newest rows
        std::vector<float> actions;
        for (int i = 0; i < steps; ++i) {
          collector.choose_actions();
          collector.step_environments();
          for (int lane = 0; lane < 3; ++lane)
            if (const auto made = collector.take(lane)) {
              const auto& rows = made->rows.back();
              const auto& column = rows.chunk->layout().columns[replay::kAction];
              const std::byte* row = rows.chunk->row(rows.first + rows.count - 1);
              actions.push_back(*reinterpret_cast<const float*>(row + column.offset));
            }
        }
        return actions;
      };
      const auto whole = make(), first = make(), second = make();
      play(*first, 33);
      std::vector<std::byte> state;
      first->save_state(state);
      CHECK(second->load_state(state).empty());
      play(*whole, 33);
      const std::vector<float> expected = play(*whole, 50);
      CHECK(expected.size() == 150);
      CHECK(play(*second, 50) == expected);
    }
  }
}

TEST_CASE("A key of another kind of noise is refused by name") {
  ActionNoiseConfig config = noise_of("parameters", 0.2, 0.2);
  CHECK(config.problems("agent").empty());
  config.reversion = 0.3;
  REQUIRE(config.problems("agent").size() == 1);
  CHECK(config.problems("agent")[0].key == "noise_reversion");
  config.kind = "ornstein_uhlenbeck";
  CHECK(config.problems("agent").empty());
  config.kind = "pink";
  NoisyLanes lanes(1);
  CHECK_THROWS_WITH_AS(lanes.make(config), doctest::Contains("pink"), std::invalid_argument);
}

TEST_CASE("Held noise lasts for steps drawn in inverse proportion to their square and ends with "
          "the episode") {
  constexpr std::size_t kRows = 3000;
  NoisyLanes lanes(kRows);
  ActionNoiseConfig config = noise_of("gaussian", 0.05, 0.05);
  config.scale.hold = 4;
  const auto noise = lanes.make(config);
  std::vector<std::vector<float>> steps;
  for (int i = 0; i < 6; ++i)
    steps.push_back(lanes.explored(*noise, i == 5));
  CHECK(action_distance(steps[0], lanes.greedy()) == doctest::Approx(0.05).epsilon(0.03));
  const auto alike = [&](std::size_t row, std::size_t one, std::size_t other) {
    return steps[one][2 * row] == steps[other][2 * row]
           && steps[one][2 * row + 1] == steps[other][2 * row + 1];
  };
  std::vector<double> shares(5);
  for (std::size_t row = 0; row < kRows; ++row) {
    std::size_t length = 1;
    while (length < 5 && alike(row, 0, length))
      ++length;
    shares[length - 1] += 1.0 / kRows;
    CHECK_FALSE(alike(row, 4, 5)); // an episode has begun
  }
  const double sum = 1 + 1.0 / 4 + 1.0 / 9 + 1.0 / 16;
  for (int n = 1; n <= 4; ++n)
    CHECK(shares[static_cast<std::size_t>(n - 1)]
          == doctest::Approx(1 / (n * n * sum)).epsilon(0.15));
  CHECK(shares[4] == 0);
}

TEST_CASE("Held noise continues from its saved state") {
  NoisyLanes lanes(40);
  ActionNoiseConfig config = noise_of("gaussian", 0.1, 0.1);
  config.scale.hold = 100;
  const auto noise = lanes.make(config);
  lanes.explored(*noise, true);
  std::vector<std::byte> saved;
  noise->save_state(saved);
  const auto randoms = lanes.randoms;
  const auto next = lanes.explored(*noise, false);
  const auto other = lanes.make(config);
  saved.push_back(std::byte{7});
  CHECK(other->load_state(saved).size() == 1);
  lanes.randoms = randoms;
  CHECK(lanes.explored(*other, false) == next);
  CHECK_THROWS_AS(other->load_state(std::span(saved).first(saved.size() / 2)),
                  std::invalid_argument);
  saved[8 + 8 + 7] = std::byte{0x80}; // the first row's steps
  CHECK_THROWS_WITH_AS(other->load_state(saved), doctest::Contains("at least 0"),
                       std::invalid_argument);
}

TEST_CASE("Held random choices are repeated, and other choices are the policy's") {
  constexpr std::size_t kRows = 2000;
  NoisyLanes lanes(kRows);
  EpsilonConfig config{.probability = {.start = 0.5, .end = 0.5}, .hold = 3};
  EpsilonGreedy greedy(config);
  EpsilonConfig always_fresh = config;
  always_fresh.hold = 1;
  const auto explored = [&](EpsilonGreedy& policy, bool begins) {
    std::fill(lanes.first.begin(), lanes.first.end(), begins ? 1 : 0);
    std::vector<float> actions(kRows, -1); // the policy's action, never drawn at random
    policy.apply({.random = lanes.pointers, .first = lanes.first}, 1000, actions);
    return actions;
  };
  const auto one = explored(greedy, true);
  const auto two = explored(greedy, false);
  const auto three = explored(greedy, false);
  const auto four = explored(greedy, false);
  double random = 0;
  double kept = 0;
  double twice = 0;
  double thrice = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    if (one[row] == -1)
      continue;
    random += 1.0 / kRows;
    kept += one[row] == two[row] ? 1.0 / kRows : 0;
    twice += one[row] == two[row] && two[row] == three[row] ? 1.0 / kRows : 0;
    thrice += one[row] == two[row] && two[row] == three[row] && three[row] == four[row] ? 1 : 0;
  }
  const double sum = 1 + 1.0 / 4 + 1.0 / 9;
  CHECK(random == doctest::Approx(0.5).epsilon(0.05));
  CHECK(kept / random == doctest::Approx(1 - 1 / sum).epsilon(0.15));
  CHECK(twice / random == doctest::Approx(1 / (9 * sum)).epsilon(0.25));
  CHECK(thrice < 5); // equal by chance
  const auto fresh = explored(greedy, true);
  CHECK(fresh != four);
  EpsilonGreedy plain(always_fresh);
  const auto before = explored(plain, false);
  const auto after = explored(plain, false);
  double same = 0;
  for (std::size_t row = 0; row < kRows; ++row)
    same += before[row] != -1 && before[row] == after[row] ? 1 : 0;
  CHECK(same < 10);
  std::vector<std::byte> nothing;
  plain.save_state(nothing);
  CHECK(nothing.empty());
}

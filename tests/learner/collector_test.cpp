#include "tests/doctest_torch.hpp"

#include "env/wrappers/flat_state.hpp"
#include "learner/collector.hpp"
#include "replay/insertion.hpp"
#include "tests/env/pool/counting_environment.hpp"

namespace troupe::learner {
namespace {

/// Its action is a function of the observation alone, so that a mixed-up row is seen.
class FirstNumber final : public Policy {
public:
  std::int64_t parameter_count() const override { return 0; }
  void load(std::span<const float>) override {}
  void act(std::span<const std::byte> observations, std::int64_t batch,
           std::span<float> actions) override {
    const std::size_t bytes = observations.size() / static_cast<std::size_t>(batch);
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch); ++i) {
      float numbers[3];
      std::memcpy(numbers, observations.data() + i * bytes, sizeof numbers);
      actions[2 * i] = numbers[0] / 2e19F;
      actions[2 * i + 1] = numbers[1] / 100;
    }
  }
};

std::unique_ptr<Collector> make(int environments, int threads,
                                const env::CountingHooks& hooks = {}) {
  const auto environment = [hooks](int) {
    return std::make_unique<env::FlatState>(std::make_unique<env::CountingEnvironment>(20, hooks));
  };
  const CollectorConfig config{.seed = 3,
                               .first_lane = 4,
                               .total_lanes = 9,
                               .environments = environments,
                               .threads = threads};
  auto made = std::make_unique<Collector>(config, environment, std::make_unique<FirstNumber>(),
                                          transition_spec(environment(0)->spec(), 3, .9));
  made->load_parameters(1, {});
  return made;
}

void play(Collector& collector, int steps) {
  for (int i = 0; i < steps; ++i) {
    collector.choose_actions();
    collector.step_environments();
  }
}

/// Frames, actions and rewards of what a lane wrote.
std::vector<float> written(Collector& collector, int lane) {
  std::vector<float> all;
  const auto insertion = collector.take(lane);
  if (!insertion)
    return all;
  for (const auto& rows : insertion->rows)
    for (std::uint32_t r = rows.first; r < rows.first + rows.count; ++r) {
      const auto add = [&](replay::TransitionColumn column, std::size_t count) {
        const std::byte* at = rows.chunk->row(r) + rows.chunk->layout().columns[column].offset;
        const auto* values = reinterpret_cast<const float*>(at);
        all.insert(all.end(), values, values + count);
      };
      add(replay::kFrame, 3);
      add(replay::kAction, 2);
      add(replay::kReward, 1);
      all.push_back(rows.chunk->flags(r));
    }
  return all;
}

TEST_CASE("what a collector writes is the same for any number of threads") {
  const auto alone = make(5, 1), together = make(5, 3), many = make(5, 100);
  for (const auto& collector : {alone.get(), together.get(), many.get()})
    play(*collector, 90);
  for (int lane = 0; lane < 5; ++lane) {
    const auto expected = written(*alone, lane);
    CHECK(expected.size() == 7 * (90 + 5)); // five episodes were begun
    CHECK(written(*together, lane) == expected);
    CHECK(written(*many, lane) == expected);
  }
  CHECK(alone->agent_steps() == 450);
  CHECK(together->take_episodes().size() == 20);
}

TEST_CASE("a collector goes on from its saved state with another number of threads") {
  const auto whole = make(4, 1), first = make(4, 2), second = make(4, 3);
  play(*whole, 70);
  play(*first, 30);
  std::vector<std::byte> state;
  first->save_state(state);
  CHECK(second->load_state(state).empty());
  play(*second, 40);
  CHECK(second->agent_steps() == whole->agent_steps());
  for (int lane = 0; lane < 4; ++lane) {
    const auto all = written(*whole, lane), end = written(*second, lane);
    REQUIRE(end.size() <= all.size());
    REQUIRE(end.size() > 40 * 7);
    CHECK(std::equal(end.rbegin(), end.rend(), all.rbegin()));
  }
}

/// An environment whose episodes cannot be kept, as those of Python.
class Forgetful final : public env::Wrapper {
public:
  Forgetful() : Wrapper(std::make_unique<env::CountingEnvironment>(20, env::CountingHooks{})) {
    spec_.saves_state = false;
  }
  void save_state(std::vector<std::byte>&) const override {
    throw std::runtime_error("nothing to save");
  }
};

TEST_CASE("where environments save no state a resumed collector begins new episodes") {
  const auto forgetful = [] {
    const auto environment = [](int) {
      return std::make_unique<env::FlatState>(std::make_unique<Forgetful>());
    };
    auto made = std::make_unique<Collector>(CollectorConfig{.total_lanes = 2, .environments = 2},
                                            environment, std::make_unique<FirstNumber>(),
                                            transition_spec(environment(0)->spec(), 3, .9));
    made->load_parameters(1, {});
    return made;
  };
  const auto first = forgetful(), second = forgetful();
  play(*first, 30); // one episode and a half
  first->take_episodes();
  std::vector<std::byte> state;
  first->save_state(state);
  play(*first, 10);
  CHECK(first->take_episodes().size() == 2); // who was saved goes on with its episodes
  CHECK(second->load_state(state).empty());
  CHECK(second->agent_steps() == 60);
  play(*second, 19);
  CHECK(second->take_episodes().empty());
  play(*second, 1);
  CHECK(second->take_episodes().size() == 2);
  CHECK(written(*second, 0).size() == 7 * (20 + 1 + 10 + 1 + 20 + 1)); // saved rows, then its own
}

TEST_CASE("an environment that fails costs its episode, is told, and the others write on") {
  for (const int threads : {1, 2}) {
    std::atomic<int> steps = 0;
    env::CountingHooks hooks;
    hooks.step = [&](std::uint64_t, std::int64_t) {
      if (++steps == 30)
        throw std::runtime_error("the floor gave way");
    };
    const auto collector = make(2, threads, hooks);
    play(*collector, 40);
    const auto failures = collector->take_failures();
    REQUIRE(failures.size() == 1);
    CHECK(failures[0].find("the floor gave way") != std::string::npos);
    CHECK(failures[0].find("counting") != std::string::npos);
    CHECK(collector->take_failures().empty());
    CHECK(collector->agent_steps() == 80); // its step counts as one
    CHECK(collector->take_episodes().size() == 3);
    const auto a = written(*collector, 0).size(), b = written(*collector, 1).size();
    CHECK(std::min(a, b) == 7 * (39 + 3)); // a row less, an episode more
    CHECK(std::max(a, b) == 7 * (40 + 2));
  }
}

TEST_CASE("an environment that fails in every episode ends the collector with its words") {
  env::CountingHooks hooks;
  hooks.reset = [](std::uint64_t) { throw std::runtime_error("no such floor"); };
  const auto collector = make(2, 1, hooks);
  CHECK_THROWS_WITH_AS(play(*collector, 1), doctest::Contains("no such floor"), std::runtime_error);
}

TEST_CASE("a run that is scaled goes on with its noise where it was") {
  const auto environment = [](int) {
    return std::make_unique<env::FlatState>(std::make_unique<env::CountingEnvironment>(20));
  };
  Collector collector({.total_lanes = 10,
                       .random_steps = 20,
                       .noise_start = 1,
                       .noise_end = 0,
                       .noise_steps = 100,
                       .environments = 2},
                      environment, std::make_unique<FirstNumber>(),
                      transition_spec(environment(0)->spec(), 3, .9));
  collector.load_parameters(1, {});
  play(collector, 7); // of 10 lanes: 70 steps of the run
  CHECK(collector.noise() == doctest::Approx(0.5));
  collector.share_run(70, 5);
  CHECK(collector.noise() == doctest::Approx(0.5));
  play(collector, 4); // of 5 lanes
  CHECK(collector.noise() == doctest::Approx(0.3));
}

} // namespace
} // namespace troupe::learner

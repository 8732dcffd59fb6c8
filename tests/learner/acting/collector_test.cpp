#include "tests/doctest_torch.hpp"

#include "env/wrappers/flat_state.hpp"
#include "env/wrappers/frame_stack.hpp"
#include "experiments/bench/copied_bytes.hpp"
#include "learner/acting/collector.hpp"
#include "learner/acting/transition_spec.hpp"
#include "replay/batch/gather.hpp"
#include "replay/table/table.hpp"
#include "tests/allocation_counter.hpp"
#include "tests/env/pool/counting_environment.hpp"

namespace troupe::learner {
namespace {

/// A policy whose action depends only on the observation, so that a mixed-up row is noticed. Counts
/// the steps of each episode.
class FirstNumber final : public Policy {
public:
  std::int64_t state_size() const override { return 1; }
  std::int64_t parameter_count() const override { return 0; }
  void load(std::span<const float>) override {}
  void act(const Observations& observations, std::span<float> actions) override {
    const std::size_t stack =
        observations.frames.size() / static_cast<std::size_t>(observations.batch);
    for (std::size_t i = 0; i * stack < observations.frames.size(); ++i) {
      float numbers[3];
      std::memcpy(numbers, observations.frames[i * stack], sizeof numbers);
      actions[2 * i] = numbers[0] / 2e19F;
      actions[2 * i + 1] = numbers[1] / 100;
      CHECK(observations.state[i]++ == numbers[1]);
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

/// Frames, actions and rewards that a lane has written.
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

TEST_CASE("The rows that a collector writes do not depend on the number of threads") {
  const auto alone = make(5, 1), together = make(5, 3), many = make(5, 100);
  for (const auto& collector : {alone.get(), together.get(), many.get()})
    play(*collector, 90);
  for (int lane = 0; lane < 5; ++lane) {
    const auto expected = written(*alone, lane);
    CHECK(expected.size() == 7 * (90 + 5)); // five episodes have begun
    CHECK(written(*together, lane) == expected);
    CHECK(written(*many, lane) == expected);
  }
  CHECK(alone->agent_steps() == 450);
  CHECK(together->take_episodes().size() == 20);
}

TEST_CASE("A collector continues from its saved state with another number of threads") {
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

/// An environment whose episodes cannot be saved, like those of Python.
class Forgetful final : public env::Wrapper {
public:
  Forgetful() : Wrapper(std::make_unique<env::CountingEnvironment>(20, env::CountingHooks{})) {
    spec_.saves_state = false;
  }
  void save_state(std::vector<std::byte>&) const override {
    throw std::runtime_error("nothing to save");
  }
};

TEST_CASE("If environments save no state, a resumed collector begins new episodes") {
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
  CHECK(first->take_episodes().size() == 2); // the saved collector continues its episodes
  CHECK(second->load_state(state).empty());
  CHECK(second->agent_steps() == 60);
  play(*second, 19);
  CHECK(second->take_episodes().empty());
  play(*second, 1);
  CHECK(second->take_episodes().size() == 2);
  CHECK(written(*second, 0).size() == 7 * (20 + 1 + 10 + 1 + 20 + 1)); // saved rows first
}

TEST_CASE("An environment that fails ends its episode and is reported, and the others continue") {
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
    CHECK(collector->agent_steps() == 80); // the failed step counts as one
    CHECK(collector->take_episodes().size() == 3);
    const auto a = written(*collector, 0).size(), b = written(*collector, 1).size();
    CHECK(std::min(a, b) == 7 * (39 + 3)); // one row less, one episode more
    CHECK(std::max(a, b) == 7 * (40 + 2));
  }
}

TEST_CASE("The time for a batch grows with the own deadlines of the environments that each thread "
          "plays") {
  const auto limit = [](int environments, int threads) {
    return batch_limit({.environments = environments,
                        .threads = threads,
                        .time_limit = std::chrono::milliseconds(50),
                        .own_deadlines = std::chrono::milliseconds(100)})
        .count();
  };
  CHECK(limit(1, 1) == 150);
  CHECK(limit(6, 1) == 650);
  CHECK(limit(6, 3) == 250);
  CHECK(limit(7, 3) == 350);
  CHECK(limit(2, 8) == 150);
}

TEST_CASE("A collector whose environments exceed their time ends with an error") {
  const auto environment = [](int) {
    return std::make_unique<env::FlatState>(std::make_unique<env::CountingEnvironment>(20));
  };
  Collector collector({.environments = 2, .time_limit = std::chrono::milliseconds(0)}, environment,
                      std::make_unique<FirstNumber>(),
                      transition_spec(environment(0)->spec(), 3, .9));
  CHECK_THROWS_WITH_AS(play(collector, 1), doctest::Contains("reset() did not return within 0 ms"),
                       std::runtime_error);
}

TEST_CASE("An environment that fails in every reset ends the collector with its error") {
  env::CountingHooks hooks;
  hooks.reset = [](std::uint64_t) { throw std::runtime_error("no such floor"); };
  const auto collector = make(2, 1, hooks);
  CHECK_THROWS_WITH_AS(play(*collector, 1), doctest::Contains("no such floor"), std::runtime_error);
}

/// Keeps the exploration settings it is given.
class Explorer final : public Policy {
public:
  explicit Explorer(Exploration& told) : told_(told) {}
  std::int64_t parameter_count() const override { return 0; }
  void load(std::span<const float>) override {}
  void act(const Observations&, std::span<float> actions) override {
    std::ranges::fill(actions, 0.0F);
  }
  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override {
    told_ = exploration;
    act(observations, actions);
  }

private:
  Exploration& told_;
};

TEST_CASE("Scaling a run keeps the progress of its exploration") {
  const auto environment = [](int) {
    return std::make_unique<env::FlatState>(std::make_unique<env::CountingEnvironment>(20));
  };
  Exploration told;
  Collector collector({.first_lane = 4, .total_lanes = 10, .random_steps = 20, .environments = 2},
                      environment, std::make_unique<Explorer>(told),
                      transition_spec(environment(0)->spec(), 3, .9));
  collector.load_parameters(1, {});
  play(collector, 7); // of 10 lanes: the seventh step follows 60 steps of the run
  CHECK(told.steps == 40);
  CHECK(told.first_lane == 4);
  CHECK(told.total_lanes == 10);
  collector.set_global_progress(70, 5);
  play(collector, 4); // of 5 lanes
  CHECK(told.steps == 65);
  CHECK(told.total_lanes == 5);
}

/// Keeps the addresses of the frames it is given.
class AddressReader final : public Policy {
public:
  std::int64_t parameter_count() const override { return 0; }
  void load(std::span<const float>) override {}
  void act(const Observations& observations, std::span<float> actions) override {
    std::ranges::fill(actions, 0.25F);
    read.assign(observations.frames.begin(), observations.frames.end());
  }
  std::vector<const std::byte*> read;
};

const env::ArraySpec kPicture{"pixels", env::ElementType::uint8, {3, 84, 84}};
const replay::TransitionSpec kPictures{
    .frame = kPicture, .stack = 3, .action_size = 1, .n_step = 3, .discount = 0.9};

// One environment, stack 3: painted (n) -> chunk row n -> act(n - 2, n - 1, n) -> batch.
TEST_CASE(
    "A frame is painted into its chunk, read there by the policy, and copied once into a batch") {
  std::vector<const std::byte*> painted;
  painted.reserve(1000);
  auto policy = std::make_unique<AddressReader>();
  const AddressReader& reader = *policy;
  Collector collector(
      {},
      [&](int) {
        return std::make_unique<experiments::PaintedEnvironment>(kPicture, 30, &painted);
      },
      std::move(policy), kPictures);
  collector.load_parameters(1, {});
  replay::Table table({.max_items = 1000}, kPictures, 1);
  const auto copied = experiments::copied_bytes([&] {
    for (int step = 0; step < 100; ++step) {
      play(collector, 1);
      if (const auto made = collector.take(0))
        table.insert(*made);
    }
  });
  CHECK(copied == 0);
  const auto newest = painted.end() - 1; // not seen by the policy yet
  CHECK(std::equal(reader.read.begin(), reader.read.end(), newest - 3, newest));
  const auto item = table.item(static_cast<std::uint64_t>(table.stats().inserted - 1));
  CHECK(item.row(item.rows - 1) == *newest);

  constexpr std::size_t kItems = 16;
  std::vector<replay::Item> items;
  table.sample(kItems, items);
  const std::size_t bytes = kItems * kPictures.observation().bytes();
  std::vector<std::byte> observation(bytes), next_observation(bytes);
  std::vector<float> action(kItems), reward(kItems), discount(kItems);
  std::vector<std::uint64_t> key(kItems);
  const replay::BatchView batch{observation, next_observation, action, reward, discount, key};
  CHECK(experiments::copied_bytes([&] { replay::gather(kPictures, items, batch, 0); })
        == static_cast<std::int64_t>(2 * bytes));
  if (counts_allocations())
    CHECK(allocations_of([&] { play(collector, 1); }) == 0);
}

TEST_CASE("An environment that stacks its own frames writes the same rows as one that does not") {
  const auto collect = [](bool stacks) {
    Collector collector(
        {.environments = 2},
        [stacks](int) -> std::unique_ptr<env::Environment> {
          auto made = std::make_unique<experiments::PaintedEnvironment>(kPicture, 30);
          if (!stacks)
            return made;
          return std::make_unique<env::FrameStack>(std::move(made), 3);
        },
        std::make_unique<AddressReader>(), kPictures);
    collector.load_parameters(1, {});
    play(collector, 70);
    std::vector<std::byte> rows;
    for (int lane = 0; lane < 2; ++lane) {
      const auto made = collector.take(lane);
      for (const auto& part : made->rows)
        rows.insert(rows.end(), part.chunk->row(part.first),
                    part.chunk->row(part.first) + part.count * part.chunk->layout().row_bytes);
    }
    return rows;
  };
  const bool equal = collect(true) == collect(false);
  CHECK(equal);
}

/// Writes a picture and, beside it, the number of the step. Keeps the addresses.
class PaintedBoth final : public env::Environment {
public:
  explicit PaintedBoth(std::int64_t size) {
    spec_.name = "painted";
    spec_.observations = {{"pixels", env::ElementType::uint8, {1, size, size}},
                          {"state", env::ElementType::float32, {2}}};
    spec_.action = {{-1}, {1}};
    spec_.saves_state = false;
  }
  const env::EnvironmentSpec& spec() const override { return spec_; }
  env::TimeStep reset(std::uint64_t, std::span<std::byte> observation) override {
    step_ = 0;
    paint(observation);
    return {};
  }
  env::TimeStep step(std::span<const double>, std::span<std::byte> observation) override {
    ++step_;
    paint(observation);
    return {.step_type = step_ == 9 ? env::StepType::last : env::StepType::mid};
  }
  void save_state(std::vector<std::byte>&) const override {}
  std::span<const std::byte> load_state(std::span<const std::byte> in) override { return in; }

private:
  void paint(std::span<std::byte> observation) {
    const auto picture = spec_.observations[0].bytes();
    std::memset(observation.data(), static_cast<int>(step_), picture);
    const float state[2] = {static_cast<float>(step_), -static_cast<float>(step_)};
    std::memcpy(observation.data() + spec_.observation_offset(1), state, sizeof state);
  }
  env::EnvironmentSpec spec_;
  std::int64_t step_ = 0;
};

/// Checks that the state belongs to the newest frame.
class BothReader final : public Policy {
public:
  std::int64_t parameter_count() const override { return 0; }
  void load(std::span<const float>) override {}
  void act(const Observations& observations, std::span<float> actions) override {
    std::ranges::fill(actions, 0.25F);
    float state[2];
    std::memcpy(state, observations.vectors[0], sizeof state);
    const std::byte newest = *observations.frames[observations.frames.size() - 1];
    CHECK(std::to_integer<int>(newest) == static_cast<int>(state[0]));
    CHECK(state[1] == -state[0]);
    ++calls;
  }
  int calls = 0;
};

// The environment's pictures of 8 x 8 are contiguous in a row, those of 3 x 3 are not.
TEST_CASE("A state is stored once beside its picture, and only the picture is stacked") {
  for (const std::int64_t size : {8, 3})
    for (const bool stacks : {false, true}) {
      CAPTURE(size);
      CAPTURE(stacks);
      auto policy = std::make_unique<BothReader>();
      const BothReader& reader = *policy;
      const env::FrameStack stacked(std::make_unique<PaintedBoth>(size), 3);
      const replay::TransitionSpec spec = transition_spec(stacked.spec(), 2, 0.9);
      CHECK(spec.frame.shape == std::vector<std::int64_t>{1, size, size});
      CHECK(spec.stack == 3);
      REQUIRE(spec.vectors.size() == 1);
      CHECK(spec.vectors[0].shape == std::vector<std::int64_t>{2});
      Collector collector(
          {},
          [&](int) -> std::unique_ptr<env::Environment> {
            auto made = std::make_unique<PaintedBoth>(size);
            if (!stacks)
              return made;
            return std::make_unique<env::FrameStack>(std::move(made), 3);
          },
          std::move(policy), spec);
      collector.load_parameters(1, {});
      replay::Table table({.max_items = 1000}, spec, 1);
      const auto copied = experiments::copied_bytes([&] {
        play(collector, 30);
        if (const auto made = collector.take(0))
          table.insert(*made);
      });
      if (size == 8 && !stacks)
        CHECK(copied == 0);
      CHECK(reader.calls == 30);
      constexpr std::size_t kItems = 16;
      std::vector<replay::Item> items;
      table.sample(kItems, items);
      const std::size_t bytes = spec.observation().bytes();
      std::vector<std::byte> observation(kItems * bytes), next_observation(kItems * bytes);
      std::vector<float> action(kItems), reward(kItems), discount(kItems);
      std::vector<float> state(2 * kItems), next_state(2 * kItems);
      std::vector<std::uint64_t> key(kItems);
      replay::gather(spec, items,
                     {.observation = observation,
                      .next_observation = next_observation,
                      .action = action,
                      .reward = reward,
                      .discount = discount,
                      .key = key,
                      .vectors = {std::as_writable_bytes(std::span(state))},
                      .next_vectors = {std::as_writable_bytes(std::span(next_state))}},
                     0);
      for (std::size_t i = 0; i < kItems; ++i) {
        CHECK(static_cast<float>(std::to_integer<int>(observation[(i + 1) * bytes - 1]))
              == state[2 * i]);
        CHECK(static_cast<float>(std::to_integer<int>(next_observation[(i + 1) * bytes - 1]))
              == next_state[2 * i]);
        CHECK(next_state[2 * i + 1] == -next_state[2 * i]);
        CHECK(next_state[2 * i] > state[2 * i]);
      }
    }
}

} // namespace
} // namespace troupe::learner

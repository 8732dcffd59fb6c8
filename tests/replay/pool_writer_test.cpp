#include "replay/pool_writer.hpp"

#include <cstring>
#include <set>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "replay/gather.hpp"
#include "tests/allocation_counter.hpp"
#include "tests/env/pool/counting_environment.hpp"
#include "tests/replay/episodes.hpp"

namespace troupe::replay {
namespace {

using env::EnvironmentPool;
using env::PoolRows;

constexpr int kEnvironments = 5;

TransitionSpec counting_spec() {
  return {.frame = {"numbers", env::ElementType::float64, {3}},
          .stack = 2,
          .action_size = 2,
          .n_step = 3};
}

float action(int environment, std::int64_t step, std::size_t k) {
  return static_cast<float>((environment * 7 + step * 3 + static_cast<std::int64_t>(k)) % 11) / 10
         - 0.5F;
}

/// Episodes of 1 + seed % 5 steps, and now and then one whose environment fails.
class UnsteadyEnvironment final : public env::Environment {
public:
  const env::EnvironmentSpec& spec() const override { return inner_.spec(); }
  env::TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override {
    seed_ = seed;
    steps_ = 0;
    return inner_.reset(seed, observation);
  }
  env::TimeStep step(std::span<const double> values, std::span<std::byte> observation) override {
    if (++steps_ == 3 && seed_ % 4 == 3)
      throw std::runtime_error("unsteady");
    env::TimeStep made = inner_.step(values, observation);
    if (steps_ > static_cast<std::int64_t>(seed_ % 5))
      made = {.step_type = env::StepType::last, .reward = made.reward, .discount = 0};
    return made;
  }
  void save_state(std::vector<std::byte>& out) const override { inner_.save_state(out); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    return inner_.load_state(in);
  }

private:
  env::CountingEnvironment inner_{1000};
  std::uint64_t seed_ = 0;
  std::int64_t steps_ = 0;
};

EnvironmentPool unsteady_pool(int threads, env::PoolThreads binding) {
  return EnvironmentPool({.environments = kEnvironments,
                          .threads = threads,
                          .binding = binding,
                          .episode_seed = env::plain_seed},
                         [](int) { return std::make_unique<UnsteadyEnvironment>(); });
}

Batch gathered(const TransitionSpec& spec, const std::vector<Item>& items) {
  Batch batch(spec, static_cast<std::int64_t>(items.size()));
  gather(spec, items, batch.view(), 0);
  return batch;
}

void add_items(const InsertionPtr& insertion, std::vector<Item>& items) {
  if (insertion)
    items.insert(items.end(), insertion->items.begin(), insertion->items.end());
}

/// The slow way: the pool writes into rows, each is copied into its writer.
std::vector<Item> play_copying(int steps) {
  EnvironmentPool pool = unsteady_pool(1, env::PoolThreads::shared);
  PoolRows rows(pool.spec(), kEnvironments);
  std::vector<TransitionWriter> writers;
  for (std::uint64_t i = 0; i < kEnvironments; ++i)
    writers.emplace_back(counting_spec(), 10 + i, 4);
  REQUIRE(pool.reset(env::all_of(pool), rows.batch(), env::patience()));
  std::vector<float> actions(kEnvironments * 2);
  for (int step = 0;; ++step) {
    for (std::size_t i = 0; i < kEnvironments; ++i) {
      if (rows.statuses[i] != env::RowStatus::ok)
        continue;
      std::ranges::copy(rows.observation(i), writers[i].next_frame().begin());
      if (rows.step_types[i] == env::StepType::first)
        writers[i].begin();
      else
        writers[i].append(std::span(actions).subspan(i * 2, 2), static_cast<float>(rows.rewards[i]),
                          static_cast<float>(rows.discounts[i]),
                          rows.step_types[i] == env::StepType::last);
    }
    if (step == steps)
      break;
    for (std::size_t i = 0; i < actions.size(); ++i)
      actions[i] = action(static_cast<int>(i / 2), step, i % 2);
    REQUIRE(pool.step(actions, rows.batch(), env::patience()));
  }
  std::vector<Item> items;
  for (TransitionWriter& writer : writers)
    add_items(writer.take(), items);
  return items;
}

PoolWriter counting_writer(const EnvironmentPool& pool) {
  return PoolWriter(pool.spec(), pool.environments(), counting_spec(), 10, 4);
}

std::vector<Item> taken(PoolWriter& writer) {
  std::vector<InsertionPtr> insertions;
  writer.take(insertions);
  std::vector<Item> items;
  for (const InsertionPtr& insertion : insertions)
    add_items(insertion, items);
  return items;
}

TEST_CASE("a pool that writes in place gives the transitions of one whose rows are copied") {
  const std::vector<Item> expected = play_copying(200);
  CHECK_GT(expected.size(), 300);
  for (const int threads : {1, 3})
    for (const auto binding : {env::PoolThreads::shared, env::PoolThreads::bound}) {
      CAPTURE(threads);
      EnvironmentPool pool = unsteady_pool(threads, binding);
      PoolWriter writer = counting_writer(pool);
      pool.observe_in(writer.places());
      PoolRows rows(pool.spec(), kEnvironments);
      rows.observations.clear(); // nobody needs them
      REQUIRE(pool.reset(env::all_of(pool), rows.batch(), env::patience()));
      std::vector<float> actions(kEnvironments * 2);
      writer.append(actions, rows.batch());
      for (int step = 0; step < 200; ++step) {
        for (std::size_t i = 0; i < actions.size(); ++i)
          actions[i] = action(static_cast<int>(i / 2), step, i % 2);
        REQUIRE(pool.step(actions, rows.batch(), env::patience()));
        writer.append(actions, rows.batch());
      }
      CHECK_EQ(writer.pending_items(), expected.size());
      const std::vector<Item> items = taken(writer);
      CHECK(gathered(counting_spec(), items) == gathered(counting_spec(), expected));
    }
}

TEST_CASE("asynchronous results are in place, too, whatever their order") {
  EnvironmentPool pool = unsteady_pool(3, env::PoolThreads::shared);
  PoolWriter writer = counting_writer(pool);
  pool.observe_in(writer.places());
  PoolRows rows(pool.spec(), 1);
  rows.observations.clear();
  pool.send_reset(env::all_of(pool));
  std::vector<std::int64_t> steps(kEnvironments);
  std::vector<float> given(kEnvironments * 2); // to each environment
  while (pool.in_flight() > 0) {
    REQUIRE(pool.receive(rows.batch(), env::patience()));
    const std::int32_t id = rows.environments[0];
    const auto i = static_cast<std::size_t>(id);
    const std::span<float> its = std::span(given).subspan(i * 2, 2);
    writer.append(its, rows.batch());
    if (steps[i] == 200)
      continue; // as many as the slow way makes
    for (std::size_t k = 0; k < 2; ++k)
      its[k] = action(id, steps[i], k);
    ++steps[i];
    pool.send({&id, 1}, std::span<const float>(its));
  }
  std::vector<Item> expected = play_copying(200);
  const std::vector<Item> items = taken(writer);
  CHECK_EQ(items.size(), expected.size());
  const Batch got = gathered(counting_spec(), items);
  const Batch all = gathered(counting_spec(), expected);
  const auto content = [](const Batch& batch, std::size_t row) {
    std::string bytes;
    const auto add = [&bytes](const void* from, std::size_t count) {
      bytes.append(static_cast<const char*>(from), count);
    };
    add(&batch.observation[row * 48], 48);
    add(&batch.next_observation[row * 48], 48);
    add(&batch.action[row * 2], 8);
    add(&batch.reward[row], 4);
    add(&batch.discount[row], 4);
    return bytes;
  };
  std::set<std::string> known;
  for (std::size_t row = 0; row < expected.size(); ++row)
    known.insert(content(all, row));
  for (std::size_t row = 0; row < items.size(); ++row)
    known.erase(content(got, row));
  CHECK(known.empty());
}

TEST_CASE("pictures are drawn into the chunk itself and a step allocates nothing") {
  const env::EnvironmentConfig config{.task = "cartpole_balance",
                                      .pixels =
                                          env::PixelOptions{.renderer = env::RendererKind::caster}};
  EnvironmentPool pool({.environments = 2, .episode_seed = env::plain_seed}, config);
  const TransitionSpec spec{.frame = pool.spec().observations[0], .stack = 3, .action_size = 1};
  PoolWriter writer(pool.spec(), 2, spec, 1);
  pool.observe_in(writer.places());
  PoolRows rows(pool.spec(), 2);
  rows.observations.clear();
  std::vector<const std::byte*> given[2]; // where the pool was told to write
  const auto note = [&] {
    for (std::size_t i = 0; i < 2; ++i)
      given[i].push_back(writer.places()[i]);
  };
  std::vector<float> actions{0.25F, -0.5F};
  note();
  REQUIRE(pool.reset(env::all_of(pool), rows.batch(), env::patience()));
  writer.append(actions, rows.batch());
  for (int step = 0; step < 10; ++step) {
    note();
    REQUIRE(pool.step(actions, rows.batch(), env::patience()));
    writer.append(actions, rows.batch());
  }
  std::vector<InsertionPtr> made;
  writer.take(made);
  REQUIRE_EQ(made.size(), 2);
  EnvironmentPool copying({.environments = 2, .episode_seed = env::plain_seed}, config);
  PoolRows copied(pool.spec(), 2);
  REQUIRE(copying.reset(env::all_of(copying), copied.batch(), env::patience()));
  for (std::size_t step = 0; step < 10; ++step) {
    REQUIRE(copying.step(std::span<const float>(actions), copied.batch(), env::patience()));
    for (std::size_t i = 0; i < 2; ++i) {
      const Item& item = made[i]->items.at(step);
      const std::byte* frame = item.row(item.rows - 1);
      CHECK_EQ(frame, given[i][step + 1]);
      CHECK(std::memcmp(frame, copied.observation(i).data(), spec.frame.bytes()) == 0);
    }
  }
  if (!counts_allocations())
    return;
  const auto deadline = env::patience();
  bool stepped = true;
  CHECK_EQ(allocations_of([&] {
             for (int step = 0; step < 10; ++step) {
               stepped =
                   pool.step(std::span<const float>(actions), rows.batch(), deadline) && stepped;
               writer.append(actions, rows.batch());
             }
           }),
           0);
  CHECK(stepped);
}

TEST_CASE("the writers of a pool go on from their state") {
  EnvironmentPool pool = unsteady_pool(1, env::PoolThreads::shared);
  PoolWriter writer = counting_writer(pool);
  PoolRows rows(pool.spec(), kEnvironments);
  std::vector<float> actions(kEnvironments * 2, 0.5F);
  PoolWriter resumed = counting_writer(pool);
  pool.observe_in(writer.places());
  REQUIRE(pool.reset(env::all_of(pool), rows.batch(), env::patience()));
  writer.append(actions, rows.batch());
  for (int step = 0; step < 40; ++step) {
    std::vector<std::byte> state;
    writer.save_state(state);
    state.push_back(std::byte{1});
    REQUIRE_EQ(resumed.load_state(state).size(), 1);
    for (std::size_t size = 0; size + 1 < state.size(); size += state.size() / 5)
      CHECK_THROWS_AS(resumed.load_state(std::span(state).first(size)), std::runtime_error);
    REQUIRE(pool.step(actions, rows.batch(), env::patience()));
    for (std::size_t i = 0; i < kEnvironments; ++i)
      std::copy_n(writer.places()[i], rows.observation_bytes, resumed.places()[i]);
    resumed.append(actions, rows.batch());
    writer.append(actions, rows.batch());
    REQUIRE_EQ(resumed.pending_items(), writer.pending_items());
    if (step % 9 == 8) {
      PoolWriter same = resumed;
      CHECK(gathered(counting_spec(), taken(same)) == gathered(counting_spec(), taken(writer)));
    }
  }
}

TEST_CASE("pools and batches that do not fit are refused in words") {
  EnvironmentPool pool = env::counting_pool({.environments = 2}, 5);
  TransitionSpec spec = counting_spec();
  spec.frame.shape = {4};
  CHECK_THROWS_WITH_AS(PoolWriter(pool.spec(), 2, spec, 1),
                       doctest::Contains("frame (bytes) is 32 but must be 24"),
                       std::invalid_argument);
  spec = counting_spec();
  spec.action_size = 3;
  CHECK_THROWS_WITH_AS(PoolWriter(pool.spec(), 2, spec, 1), doctest::Contains("action size is 3"),
                       std::invalid_argument);
  PoolWriter one(pool.spec(), 1, counting_spec(), 1);
  CHECK_THROWS_WITH_AS(pool.observe_in(one.places()), doctest::Contains("has 1 entries"),
                       std::invalid_argument);
  PoolRows rows(pool.spec(), 2);
  REQUIRE(pool.reset(env::all_of(pool), rows.batch(), env::patience()));
  std::vector<float> actions(4);
  CHECK_THROWS_WITH_AS(one.append(actions, rows.batch()), doctest::Contains("environment 1"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(one.append(std::span(actions).first(3), rows.batch()),
                       doctest::Contains("is 3 but must be 4"), std::invalid_argument);
  PoolWriter two(pool.spec(), 2, counting_spec(), 1);
  pool.observe_in(two.places());
  pool.observe_in({});
  rows.observations.clear();
  CHECK_THROWS_WITH_AS((void)pool.step(actions, rows.batch(), env::patience()),
                       doctest::Contains("observations has 0 entries"), std::invalid_argument);
}

} // namespace
} // namespace troupe::replay

// How often runs use their items.
#include "tests/actors/small_run.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "env/plugin/plugin.hpp"
#include "env/state_bytes.hpp"
#include "learner/agents/impala/impala.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::actors;

namespace {

constexpr std::int64_t kRollout = 4;
constexpr std::int64_t kBatch = 8;

/// Episodes of three steps. The observation is the number of observations before it.
class Counting final : public env::Environment {
public:
  explicit Counting(const env::Options&) {
    spec_.name = "counting";
    spec_.observations = {{"count", env::ElementType::float64, {1}}};
    spec_.action = {.minimum = {-1}, .maximum = {1}, .choices = {0}};
    spec_.episode_steps = 3;
    spec_.control_timestep_seconds = 1;
  }
  const env::EnvironmentSpec& spec() const override { return spec_; }

  env::TimeStep reset(std::uint64_t, std::span<std::byte> observation) override {
    state_.steps = 0;
    observe(observation);
    return {};
  }
  env::TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    observe(observation);
    const bool last = ++state_.steps == spec_.episode_steps;
    return {last ? env::StepType::last : env::StepType::mid, action[0], 1};
  }
  void save_state(std::vector<std::byte>& out) const override { env::save_value(out, state_); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    env::load_value(in, state_, "counting");
    return in;
  }
  void save_lasting_state(std::vector<std::byte>& out) const override { save_state(out); }
  std::span<const std::byte> load_lasting_state(std::span<const std::byte> in) override {
    return load_state(in);
  }

private:
  struct State {
    std::int64_t steps = 0;
    std::int64_t count = 0;
  };
  void observe(std::span<std::byte> observation) {
    const auto count = static_cast<double>(state_.count++);
    std::memcpy(observation.data(), &count, sizeof count);
  }
  env::EnvironmentSpec spec_;
  State state_;
};

using Batches = std::vector<std::vector<double>>; // of each update, the first observation of items

/// Adds the items of each batch to a list and hands it on.
class RecordingReplica final : public learner::Replica {
public:
  RecordingReplica(std::unique_ptr<learner::Replica> inner, std::shared_ptr<Batches> batches)
      : inner_(std::move(inner)), batches_(std::move(batches)) {}

  void build(learner::ReplicaContext& context) override { inner_->build(context); }
  learner::Input input_fn(const learner::InputContext& context) override {
    return inner_->input_fn(context);
  }
  learner::Metrics step_fn(learner::ReplicaContext& context,
                           const learner::TensorMap& batch) override {
    const at::Tensor first =
        batch.at("observation").select(1, 0).flatten().to(at::kDouble).contiguous();
    const auto* values = first.const_data_ptr<double>();
    batches_->emplace_back(values, values + first.numel());
    return inner_->step_fn(context, batch);
  }
  learner::TensorMap parameters() override { return inner_->parameters(); }
  learner::TensorMap optimizer_state() override { return inner_->optimizer_state(); }
  void load(const learner::TensorMap& parameters,
            const learner::TensorMap& optimizer_state) override {
    inner_->load(parameters, optimizer_state);
  }
  at::Tensor policy_parameters() override { return inner_->policy_parameters(); }

private:
  std::unique_ptr<learner::Replica> inner_;
  std::shared_ptr<Batches> batches_;
};

learner::AgentPtr impala(std::int64_t item_uses) {
  return learner::make_impala_agent(
      {.layers = {12}, .rollout = kRollout, .batch_size = kBatch, .item_uses = item_uses});
}

/// IMPALA whose replica lists the batches of its updates.
class RecordingAgent final : public learner::Agent {
public:
  RecordingAgent(std::int64_t item_uses, std::shared_ptr<Batches> batches)
      : inner_(impala(item_uses)), batches_(std::move(batches)) {}

  learner::Storage storage() const override { return inner_->storage(); }
  std::int64_t batch_size() const override { return inner_->batch_size(); }
  std::unique_ptr<learner::Policy>
  make_policy(const replay::TransitionSpec& transitions) const override {
    return inner_->make_policy(transitions);
  }
  std::unique_ptr<learner::Replica>
  make_replica(const replay::TransitionSpec& transitions) const override {
    return std::make_unique<RecordingReplica>(inner_->make_replica(transitions), batches_);
  }

private:
  learner::AgentPtr inner_;
  std::shared_ptr<Batches> batches_;
};

RunConfig counting(learner::AgentPtr agent, std::int64_t environment_steps) {
  RunConfig config = small(environment_steps);
  config.environment = {.task = "counting"};
  config.agent = std::move(agent);
  config.replay = {};
  config.actors.random_steps = 0;
  return config;
}

} // namespace

TROUPE_ENVIRONMENTS({"counting", "Observations are counted.", env::make_own<Counting>});

TEST_CASE("An agent that asks for two uses gets every item exactly twice in order, before and "
          "after a checkpoint") {
  for (const bool deterministic : {true, false}) {
    CAPTURE(deterministic);
    const auto batches = std::make_shared<Batches>();
    const auto agent = std::make_shared<const RecordingAgent>(2, batches);
    const TemporaryFolder folder;
    const auto with_one_lane = [&](std::int64_t steps) {
      RunConfig config = counting(agent, steps);
      config.deterministic = deterministic;
      config.actors.environment = 1;
      return config;
    };
    const RunResult half = play(with_one_lane(600), folder.path());
    REQUIRE(half.error == "");
    const auto before = half.progress.updates;
    CHECK(before > 40);
    CHECK(before % 2 == 0);
    const RunResult whole = play(with_one_lane(1200), folder.path(), half.checkpoint);
    REQUIRE(whole.error == "");
    CHECK(whole.progress.updates > before + 40);
    REQUIRE(std::ssize(*batches) == whole.progress.updates);
    std::vector<double> items;
    for (std::size_t i = 0; i < batches->size(); i += 2) {
      REQUIRE(std::ssize((*batches)[i]) == kBatch);
      CHECK((*batches)[i] == (*batches)[i + 1]);
      items.insert(items.end(), (*batches)[i].begin(), (*batches)[i].end());
    }
    std::size_t out_of_order = 0;
    for (std::size_t i = 1; i < items.size(); ++i)
      out_of_order += items[i] == items[i - 1] + static_cast<double>(kRollout) ? 0 : 1;
    CHECK(out_of_order == 0);
    if (deterministic) // a free run may end before its last batches are used
      CHECK(whole.progress.inserts - std::ssize(items) < kBatch);
  }
}

TEST_CASE("IMPALA with two uses of each item makes twice the updates per step") {
  std::vector<RunResult> results;
  for (const std::int64_t item_uses : {1, 2}) {
    const TemporaryFolder folder;
    results.push_back(play(counting(impala(item_uses), 1200), folder.path()));
    REQUIRE(results.back().error == "");
  }
  CHECK(results[0].progress.updates > 30);
  CHECK(results[1].progress.updates == 2 * results[0].progress.updates);
  CHECK(results[1].progress.inserts == results[0].progress.inserts);
  CHECK(results[1].progress.samples == results[0].progress.samples);
}

TEST_CASE("A resumed deterministic run that uses each item three times equals an uninterrupted "
          "one, with one replica and with two") {
  for (const int replicas : {1, 2}) {
    CAPTURE(replicas);
    check_resumption(
        [&](std::int64_t steps) {
          RunConfig config = counting(impala(3), steps);
          config.learner.replicas = replicas;
          return config;
        },
        1200, 800);
  }
}

TEST_CASE("A number of uses that contradicts how items are chosen is refused") {
  class Contradictory final : public learner::Agent {
  public:
    explicit Contradictory(const learner::Storage& storage) : storage_(storage) {}
    learner::Storage storage() const override { return storage_; }
    std::int64_t batch_size() const override { return 1; }
    std::unique_ptr<learner::Policy> make_policy(const replay::TransitionSpec&) const override {
      return nullptr;
    }
    std::unique_ptr<learner::Replica> make_replica(const replay::TransitionSpec&) const override {
      return nullptr;
    }

  private:
    learner::Storage storage_;
  };
  const replay::TransitionSpec transitions{.frame = {"count", env::ElementType::float32, {1}},
                                           .action_size = 1};
  const auto stored = [&](const learner::Storage& storage) {
    return learner::stored_by(Contradictory(storage), transitions);
  };
  CHECK(stored({.sequence_steps = 2, .on_policy = true, .item_uses = 2}).sequence_steps == 2);
  for (const learner::Storage& storage :
       {learner::Storage{.on_policy = true, .item_uses = 0}, learner::Storage{.item_uses = 2},
        learner::Storage{
            .sequence_steps = 2, .on_policy = true, .item_uses = 2, .newest_policy = true}})
    CHECK_THROWS_WITH_AS(stored(storage), doctest::Contains("Storage::item_uses is"),
                         std::invalid_argument);
}

TEST_CASE("A free run makes as many updates as its items are worth, also if it often pauses") {
  auto config = small(8000);
  config.deterministic = false;
  config.replay.error_buffer = 64; // samples, two updates
  config.evaluation.period = 500;
  config.evaluation.episodes = 1;
  const TemporaryFolder folder;
  const RunResult result = play(config, folder.path());
  REQUIRE(result.error == "");
  const auto due = (result.progress.inserts - 200) * 8 / 32;
  CHECK(result.progress.updates >= due - 8);
  CHECK(result.progress.updates <= due + 8);
}

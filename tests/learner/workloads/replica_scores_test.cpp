// A score is that of one model, also where the models of the replicas differ.
#include <torch/nn.h>

#include "tests/doctest_torch.hpp"

#include "learner/replicas/strategy_options.hpp"
#include "learner/workloads/sngan.hpp"
#include "tests/learner/replicas.hpp"
#include "tests/learner/tensor_maps.hpp"
#include "tests/learner/workloads/classifier_fixture.hpp"

namespace troupe::learner {
namespace {

/// Trains under a strategy, and compares the scores that replica 0 reports with those of a single
/// replica that has its parameters and buffers.
void check_scores(const std::string& strategy, const ReplicaFactory& factory, std::int64_t steps) {
  CAPTURE(strategy);
  Replicator replicator(make_strategy(parse_strategy(strategy)));
  ReplicaProgram program(replicator, factory);
  program.run(steps);
  CHECK_FALSE(same(program.replica(0).parameters(), program.replica(1).parameters(), 1e-6));
  Metrics reported;
  replicator.call([&](ReplicaContext& context) {
    const auto mine = program.replica(context.local_id()).evaluate(context);
    if (context.replica_id() == 0)
      reported = mine;
    return TensorMap{};
  });
  const auto judge = factory();
  ReplicaContext alone(nullptr);
  judge->build(alone);
  judge->load(program.replica(0).parameters(), {});
  const auto expected = judge->evaluate(alone);
  REQUIRE_FALSE(expected.empty());
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    CHECK(reported.at(name) == doctest::Approx(value).epsilon(1e-6));
  }
}

ReplicaFactory gan_with(bool global_batch_norm) {
  SnganConfig config;
  config.latent = 8;
  config.generator_channels = config.critic_channels = 4;
  config.critic_steps = 2;
  config.batch_size = 6;
  config.precision = "float64";
  config.global_batch_norm = global_batch_norm;
  config.evaluation_samples = 120; // three portions
  SnganSpec spec{.classes = kClasses, .size = 32};
  spec.input = shared_batches([](std::uint64_t step) { return pictures(12, step, at::kByte, 32); });
  spec.real = std::make_shared<TensorDataset>(pictures(31, 5, at::kByte, 32));
  spec.describe = [](const at::Tensor& seen) -> TensorMap {
    const auto colours = seen.to(at::kDouble).mean({2, 3}) / 255;
    return {{"features", colours}, {"logits", colours * 9}};
  };
  return [=] { return make_sngan(config, spec); };
}

} // namespace

TEST_CASE("Under local SGD, a classifier's score is that of replica 0's model on all rows") {
  auto spec = spec_of();
  spec.input = shared_batches([](std::uint64_t step) { return pictures(kBatch, step); });
  spec.validation = std::make_shared<TensorDataset>(pictures(17, 99));
  const auto config = config_of("resnet20");
  check_scores(
      "local_sgd replicas=2 local_steps=8", [&] { return make_classifier(config, spec); }, 3);
}

TEST_CASE("A GAN's score is that of replica 0's generator") {
  check_scores("local_sgd replicas=2 local_steps=8", gan_with(true), 2);
  check_scores("mirrored replicas=2", gan_with(false), 2); // only the running averages differ
}

} // namespace troupe::learner

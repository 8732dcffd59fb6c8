#include "tests/doctest_torch.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include "learner/device/safetensors.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe::learner;
using namespace troupe::tests;

TEST_CASE("The README's example learns, saves, resumes and acts") {
  const troupe::TemporaryFolder folder;
  const auto path = folder / "learner.safetensors";
  const D4pgConfig config = small_config();
  const auto spec = state_spec(5, 2);
  const TensorMap batch = random_batch(spec, 32, 1);

  const AgentPtr agent = make_d4pg_agent(config);
  ReplicaContext context(nullptr, 1); // one replica, seed 1
  const auto learner = agent->make_replica(spec);
  learner->build(context);
  const Metrics metrics = learner->step_fn(context, batch); // {"critic_loss", …}
  CHECK(metrics.count("critic_loss") == 1);

  write_safetensors(path, learner->parameters(), {{"updates", "1"}});
  const auto policy = agent->make_policy(spec);
  const at::Tensor flat = learner->policy_parameters(); // what is published to the actors
  policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  std::vector<float> actions(2);
  policy->act(bytes_of(batch.at("observation").narrow(0, 0, 1)), 1, actions); // no noise
  CHECK(std::abs(actions[0]) < 1);

  const auto resumed = agent->make_replica(spec);
  resumed->build(context);
  resumed->load(read_safetensors(path).tensors, learner->optimizer_state());
  CHECK(equal(resumed->parameters(), learner->parameters()));
}

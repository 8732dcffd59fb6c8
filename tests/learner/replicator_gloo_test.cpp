#include <torch/optim/adam.h>

#include "tests/doctest_torch.hpp"

#include "learner/replicator.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/learner/mlp_replica.hpp"

namespace troupe::learner {

TEST_CASE("2 replicas over Gloo on half the batch each equal 1 on the whole after 100 steps"
          * doctest::skip(collectives::kGlooSkipped)) {
  ReplicaRunner whole(std::make_unique<MlpReplica>(), nullptr);
  for (int step = 0; step < 100; ++step)
    whole.step();
  std::vector<TensorMap> parameters(2);
  const auto errors = collectives::on_ranks(
      collectives::Means::gloo, 2, [&](collectives::Communicator& communicator) {
        ReplicaRunner runner(std::make_unique<MlpReplica>(), &communicator);
        for (int step = 0; step < 100; ++step)
          runner.step();
        parameters[static_cast<std::size_t>(communicator.rank())] = runner.replica().parameters();
      });
  REQUIRE(errors == std::vector<std::string>(2));
  for (const auto& mine : parameters)
    CHECK(difference(mine, whole.replica().parameters()) < 1e-5);
}

} // namespace troupe::learner

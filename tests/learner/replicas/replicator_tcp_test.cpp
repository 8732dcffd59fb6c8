#include <torch/optim/adam.h>

#include "tests/doctest_torch.hpp"

#include "learner/replicas/replicator.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/learner/mlp_replica.hpp"
#include "tests/learner/replicas.hpp"

namespace troupe::learner {

TEST_CASE("2 replicas over TCP on half the batch each equal 1 on the whole after 100 steps"
          * doctest::skip(collectives::kStoreSkipped)) {
  const auto make = [] { return std::make_unique<MlpReplica>(); };
  Replicas whole(make, 1);
  whole.run(100);
  std::vector<TensorMap> parameters(2);
  const auto errors = collectives::on_ranks(
      collectives::Means::tcp, 2, [&](collectives::Communicator& communicator) {
        Replicator replicator(make_worker_strategy(&communicator));
        ReplicaProgram program(replicator, make);
        program.run(100);
        parameters[static_cast<std::size_t>(communicator.rank())] = program.replica(0).parameters();
      });
  REQUIRE(errors == std::vector<std::string>(2));
  for (const auto& mine : parameters)
    CHECK(difference(mine, whole.replica(0).parameters()) < 1e-5);
}

} // namespace troupe::learner

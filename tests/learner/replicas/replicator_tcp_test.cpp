#include <torch/optim/adam.h>

#include "tests/doctest_torch.hpp"

#include <thread>

#include "learner/replicas/replicator.hpp"
#include "learner/replicas/strategy_options.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/learner/mlp_replica.hpp"
#include "tests/learner/replicas.hpp"
#include "tests/reserved_port.hpp"

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

TEST_CASE("A strategy of processes on a trusted network meets at an address beyond loopback"
          * doctest::skip(collectives::kStoreSkipped)) {
  collectives::ProcessTopology place;
  place.size = place.local_size = 2;
  place.rendezvous_host = "0.0.0.0"; // any host of the network would reach it
  place.rendezvous_port = reserved_port();
  place.trusted_network = true; // as TROUPE_TRUSTED_NETWORK=1
  std::vector<std::string> errors(2);
  {
    std::vector<std::jthread> processes;
    for (int rank = 0; rank < 2; ++rank)
      processes.emplace_back([&, rank] {
        auto mine = place;
        mine.rank = mine.local_rank = rank;
        try {
          Replicator replicator(make_strategy(parse_strategy("multi_worker backend=tcp"), mine));
          const auto sums = replicator.call([](ReplicaContext& context) {
            return TensorMap{{"ones", context.all_reduce(torch::ones({1}), ReduceOp::sum)}};
          });
          if (sums[0].at("ones").item<float>() != 2)
            throw std::runtime_error("wrong sum");
        } catch (const std::exception& error) {
          errors[static_cast<std::size_t>(rank)] = error.what();
        }
      });
  }
  CHECK(errors == std::vector<std::string>(2));
}

} // namespace troupe::learner

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include <future>
#include <thread>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "env/wire/context.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/parameter_server/parameter_server_host.hpp"
#include "learner/replicas/replicator.hpp"
#include "learner/replicas/strategy_options.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/learner/mlp_replica.hpp"
#include "tests/learner/replicas.hpp"
#include "tests/learner/worker_strategy.hpp"
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
        Replicator replicator(make_worker_strategy(communicator));
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

namespace {

/// A process of an asynchronous program, with one replica that has one parameter.
struct ServedProcess {
  ServedProcess(int rank, const c10::intrusive_ptr<c10d::Store>& store,
                std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    collectives::ProcessTopology place;
    place.size = place.local_size = 2;
    place.rank = place.local_rank = rank;
    auto options = parse_strategy("parameter_server");
    options.rendezvous = [store] { return store; };
    options.communicator.timeout = timeout;
    strategy = make_strategy(options, place);
    context = std::make_unique<ReplicaContext>(strategy->assignment(0));
    optimizer = context->wrap_optimizer(std::make_unique<torch::optim::SGD>(
        std::vector<at::Tensor>{parameter}, torch::optim::SGDOptions(1)));
  }
  double step() {
    parameter.mutable_grad() = torch::ones({1});
    optimizer->step();
    return parameter.item<double>();
  }
  std::unique_ptr<Strategy> strategy;
  std::unique_ptr<ReplicaContext> context;
  at::Tensor parameter = torch::zeros({1});
  std::unique_ptr<WrappedOptimizer> optimizer;
};

} // namespace

TEST_CASE("Processes load the parameters that their chief serves, in any order") {
  const c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  ServedProcess chief(0, store);
  ServedProcess other(1, store);
  CHECK(chief.step() == -1);
  const auto saved = chief.optimizer->state();
  CHECK(other.step() == -2);
  auto loaded = std::async(std::launch::async, [&] { other.optimizer->load(saved); });
  chief.optimizer->load(saved);
  loaded.get();
  CHECK(chief.parameter.item<double>() == -1);
  CHECK(other.parameter.item<double>() == -1);
  CHECK(other.step() == -2);
  CHECK(chief.step() == -3);
}

TEST_CASE("A chief that has finished serves longer than its timeout while another process works") {
  using namespace std::chrono_literals;
  const c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  auto chief = std::make_unique<ServedProcess>(0, store, 1s);
  auto other = std::make_unique<ServedProcess>(1, store);
  auto ended = std::async(std::launch::async, [&] { chief.reset(); });
  REQUIRE(ended.wait_for(2500ms) == std::future_status::timeout);
  CHECK(other->step() == -1);
  other.reset();
  ended.get();
}

TEST_CASE("If a replica fails, the others stop waiting for the parameter servers") {
  env::wire::Context context;
  ParameterServerHost host(context, {.server = central_storage(2)});
  for (const std::string& servers : {std::string(), " servers=" + host.endpoint()}) {
    CAPTURE(servers);
    std::string waited;
    Replicator replicator(
        make_strategy(parse_strategy("central_storage replicas=2 timeout_seconds=20" + servers)));
    const auto optimizers = replicator.build<WrappedOptimizer>([](ReplicaContext& replica) {
      return std::shared_ptr<WrappedOptimizer>(
          replica.wrap_optimizer(std::make_unique<torch::optim::SGD>(
              std::vector<at::Tensor>{torch::zeros({1})}, torch::optim::SGDOptions(1))));
    });
    const auto body = [&](ReplicaContext& replica) {
      if (replica.replica_id() == 0)
        throw std::runtime_error("it stops");
      try {
        optimizers.of(replica).step();
      } catch (const std::exception& error) {
        waited = error.what();
        throw;
      }
      return TensorMap{};
    };
    CHECK_THROWS_AS(replicator.call(body), ReplicaError);
    CHECK(has(waited, "another replica failed: it stops"));
  }
}

} // namespace troupe::learner

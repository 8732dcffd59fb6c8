#include "tests/learner/replicas/line_fit.hpp"

#include "tests/doctest_torch.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include "learner/parameter_server/parameter_server_rule.hpp"
#include "tests/learner/agents/fed_replica.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

/// Parameters of each replica after `steps` steps on its part of the batch.
std::vector<TensorMap> train(const D4pgConfig& config, int replicas, int steps,
                             const std::function<ReplicaAssignment(int)>& assignment) {
  const replay::TransitionSpec spec = state_spec(5, 2);
  std::vector<TensorMap> results(static_cast<std::size_t>(replicas));
  const auto errors = on_threads(replicas, [&](int id) {
    ReplicaContext context(assignment(id), 1);
    const auto learner = make_d4pg_agent(config)->make_replica(spec);
    learner->build(context);
    const std::int64_t share = kBatch / replicas;
    for (int step = 0; step < steps; ++step) {
      TensorMap batch = random_batch(spec, kBatch, 10 * static_cast<std::uint64_t>(step));
      for (auto& [name, tensor] : batch)
        tensor = tensor.narrow(0, id * share, share).contiguous();
      learner->step_fn(context, batch);
    }
    results[static_cast<std::size_t>(id)] = copied(learner->parameters());
  });
  CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(replicas)));
  return results;
}

} // namespace

TEST_CASE("D4PG with central storage equals one replica on the whole batch in float64") {
  D4pgConfig config = small_config();
  config.precision = "float64";
  config.gradient_norm = 0; // each replica would clip its own gradient
  const auto whole = train(config, 1, 60, [](int) { return ReplicaAssignment{}; });
  LocalParameterServer server(central_storage(2), 20s);
  const auto halves = train(config, 2, 60, [&](int id) {
    return ReplicaAssignment{.replica_id = id,
                             .num_replicas = 2,
                             .replicas_in_sync = 2,
                             .update_rule = local_parameter_server_rules(server, id)};
  });
  CHECK(server.version(0) == 60); // the critic's
  CHECK(server.version(1) == 60); // the policy's
  for (const auto& [name, tensor] : whole[0]) {
    CAPTURE(name);
    const double scale = tensor.abs().max().item<double>();
    CHECK((tensor - halves[0].at(name)).abs().max().item<double>() < 1e-5 * scale);
  }
}

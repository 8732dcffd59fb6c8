#include <torch/optim/sgd.h>

#include "tests/actor_fixture.hpp"

#include "actors/protocol/messages.pb.h"
#include "actors/roles/parameter_server_actor.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/parameter_server/parameter_server_client.hpp"
#include "learner/replicas/replica_context.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

/// Trains from zeros for `steps` steps of SGD with learning rate 1 and gradients of 1.
at::Tensor train(const std::string& endpoint, int steps) {
  env::wire::Context context;
  auto parameter = torch::zeros({3});
  learner::ReplicaContext replica(
      learner::ReplicaAssignment{.update_rule = learner::remote_parameter_server_rules(
                                     context, {.endpoints = {endpoint}, .timeout = 20s})});
  const auto optimizer = replica.wrap_optimizer(std::make_unique<torch::optim::SGD>(
      std::vector<at::Tensor>{parameter}, torch::optim::SGDOptions(1)));
  for (int i = 0; i < steps; ++i) {
    parameter.mutable_grad() = torch::ones({3});
    optimizer->step();
  }
  return parameter;
}

TEST_CASE_FIXTURE(
    tests::ActorFixture,
    "A parameter server actor serves learners, reports, saves and continues from the saved file") {
  const TemporaryFolder folder;
  const auto path = (folder / "servers").string();
  const auto context = std::make_shared<env::wire::Context>();
  const auto first = system.spawn(parameter_server_actor, context,
                                  learner::ParameterServerHostOptions{}, std::uint64_t{0});
  CHECK(train(ask<std::string>(first, hello_atom_v), 5).equal(torch::full({3}, -5.0)));
  const auto report = decode<wire::ParameterServerReport>(ask<ProtoBytes>(first, report_atom_v));
  REQUIRE(report.optimizers_size() == 1);
  CHECK(report.optimizers(0).version() == 5);
  CHECK(report.optimizers(0).applied() == 5);
  CHECK(report.optimizers(0).rate_scale_sum() == 5);
  ask<done_atom>(first, save_atom_v, path);
  const auto second = system.spawn(parameter_server_actor, context,
                                   learner::ParameterServerHostOptions{}, std::uint64_t{0});
  ask<done_atom>(second, load_atom_v, path);
  // A learner that joins now gets the saved parameters.
  CHECK(train(ask<std::string>(second, hello_atom_v), 2).equal(torch::full({3}, -7.0)));
  auto pending = self->request(second, caf::infinite, load_atom_v, path + ".none");
  deliver_all();
  pending.receive(
      [](done_atom) { FAIL("a file that is not there was loaded"); },
      [&](caf::error& error) { CHECK(explain(system, error).find(".none") != std::string::npos); });
}

TEST_CASE_FIXTURE(
    tests::ActorFixture,
    "A restarted parameter server continues from its snapshot, but one of a new run does not") {
  const TemporaryFolder folder;
  const auto context = std::make_shared<env::wire::Context>();
  learner::ParameterServerHostOptions options;
  options.snapshot = folder / "servers" / "shard-0.safetensors";
  const auto spawn = [&](std::uint64_t incarnation) {
    return system.spawn(parameter_server_actor, context, options, incarnation);
  };
  const auto version = [&](const ParameterServerActor& server) {
    const auto report = decode<wire::ParameterServerReport>(ask<ProtoBytes>(server, report_atom_v));
    CHECK(report.optimizers_size() <= 1);
    return report.optimizers_size() == 0 ? 0 : report.optimizers(0).version();
  };
  const auto end = [&](const ParameterServerActor& server) { // it then writes its final state
    caf::anon_send_exit(server, caf::exit_reason::user_shutdown);
    deliver_all();
  };
  {
    const auto first = spawn(0);
    train(ask<std::string>(first, hello_atom_v), 4);
    end(first);
  }
  {
    const auto back = spawn(1);
    CHECK(version(back) == 4);
    end(back);
  }
  const auto other = spawn(0);
  CHECK(version(other) == 0);
  end(other);
}

} // namespace
} // namespace troupe::actors

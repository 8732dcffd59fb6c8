#include "actors/run/lifecycle.hpp"

#include "learner/replicas/replica.hpp"
#include "tests/actors/run/head_fixture.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

/// Makes updates from nothing.
class Idler final : public learner::Replica {
public:
  void build(learner::ReplicaContext&) override {}
  learner::Input input_fn(const learner::InputContext&) override {
    return [] { return learner::TensorMap{{"x", at::zeros({1})}}; };
  }
  learner::Metrics step_fn(learner::ReplicaContext&, const learner::TensorMap&) override {
    return {};
  }
  learner::TensorMap parameters() override { return {}; }
  learner::TensorMap optimizer_state() override { return {}; }
  void load(const learner::TensorMap&, const learner::TensorMap&) override {}
};

TEST_CASE_FIXTURE(HeadFixture, "A learner that starts during a pause makes no update before "
                               "training continues") {
  config.workload = [] { return std::make_unique<Idler>(); };
  wire::RunState before;
  before.set_updates(5);
  const Progress progress;
  RunSchedule schedule(config, before);
  RunCheckpoints checkpoints(context, actors, [](const std::string&) {});
  Lifecycle lifecycle(context, actors, schedule, checkpoints, progress);
  actors.start_services(0);
  lifecycle.add({Role::learner, 0});
  lifecycle.restart_lost();
  const auto made = [this] {
    return actors.ask<std::int64_t>(actors.at({Role::learner, 0}), 60s, "waiting for a learner",
                                    flush_atom_v, kAllGranted);
  };
  CHECK(made() == 0);
  actors.send(actors.at({Role::learner, 0}), grant_atom_v, schedule.updates());
  CHECK(made() == 5);
}

} // namespace
} // namespace troupe::actors

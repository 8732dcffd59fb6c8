#include "actors/run/operator_requests.hpp"

#include "tests/actors/run/head_fixture.hpp"

namespace troupe::actors {
namespace {

TEST_CASE_FIXTURE(HeadFixture, "An operator's checkpoint begins again after a death during the "
                               "capture") {
  config.workload = [] { return nullptr; };
  const Progress progress;
  RunSchedule schedule(config, {});
  RunCheckpoints checkpoints(context, actors, [](const std::string&) {});
  Lifecycle lifecycle(context, actors, schedule, checkpoints, progress);
  int begun = 0;
  OperatorRequests requests(context, actors, schedule, lifecycle, checkpoints,
                            {.pause = {},
                             .unpause = {},
                             .cancel_evaluation = {},
                             .begin_checkpoint =
                                 [&begun] {
                                   if (++begun == 1)
                                     throw ActorLost();
                                 },
                             .hold = {}});
  wire::ControlRequest checkpoint;
  checkpoint.set_checkpoint(true);
  checkpoint.set_deadline_seconds(3600);
  requests.take(1, encode(checkpoint), encode(wire::RestartOrder()));
  CHECK_THROWS_AS(requests.serve(progress), ActorLost);
  requests.serve(progress);
  CHECK(begun == 2);
}

} // namespace
} // namespace troupe::actors

#include "actors/run/run_schedule.hpp"

#include "learner/agents/d4pg/d4pg.hpp"
#include "learner/agents/impala/impala.hpp"
#include "tests/doctest_torch.hpp"

namespace troupe::actors {
namespace {

RunConfig schedule_config() { // 2 actors with 3 environments each, 12'000 steps, action repeat 4
  RunConfig config;
  config.environment.action_repeat = 4;
  config.actors.environment = 2;
  config.actors.environments_per_actor = 3;
  config.replay.minimum_items = 100;
  config.replay.samples_per_insert = 8;
  config.replay.n_step = 5;
  config.agent = learner::make_d4pg_agent({.batch_size = 32});
  config.evaluation.period = 1000;
  config.stop.environment_steps = 12'000;
  return config;
}

Progress at_steps(std::int64_t environment_steps) {
  Progress now;
  now.environment_steps = environment_steps;
  now.agent_steps = environment_steps / 4;
  return now;
}

TEST_CASE(
    "Learners are granted updates once there are enough items, about one second's worth ahead") {
  const auto config = schedule_config();
  RunSchedule schedule(config, {});
  struct Row {
    std::int64_t inserts, updates;
    double rate;
    std::int64_t granted;
  };
  for (const Row& row : {Row{99, 0, 0, 0}, Row{100, 0, 0, 32}, Row{200, 20, 50.5, 102},
                         Row{200, 10, 0, 102}, Row{200, 200, 1e6, 10'200}}) {
    Progress now;
    now.inserts = row.inserts;
    now.updates = row.updates;
    now.updates_per_second = row.rate;
    CHECK(schedule.extend_updates(now) == row.granted);
  }
}

TEST_CASE("An on-policy agent is granted as many updates for each batch as it uses its items in") {
  auto config = schedule_config();
  config.replay = {};
  config.agent = learner::make_impala_agent({.batch_size = 32, .item_uses = 3});
  RunSchedule schedule(config, {});
  Progress now;
  for (const auto& [inserts, granted] : {std::pair{31, 0}, {32, 3}, {63, 3}, {64, 6}}) {
    now.inserts = inserts;
    CHECK(schedule.extend_updates(now) == granted);
  }
  now.samples = 64;
  now.updates = 6;
  schedule.begin_training(now); // after a pause
  now.inserts = 95;
  CHECK(schedule.extend_updates(now) == 6);
  now.inserts = 96;
  CHECK(schedule.extend_updates(now) == 9);
}

TEST_CASE("Items of an earlier session that the shards did not restore are worth no updates") {
  auto config = schedule_config();
  wire::RunState before;
  before.set_earlier_inserts(1000);
  before.set_earlier_samples(7000);
  RunSchedule schedule(config, before);
  Progress now;
  now.inserts = 1099;
  CHECK(schedule.extend_updates(now) == 0);
  now.inserts = 1180;
  CHECK(schedule.extend_updates(now) == 32);
  CHECK(schedule.updates_before_pause(now) == 20); // 8/32 of 180 items beyond the first 100
  config.replay = {};
  config.agent = learner::make_impala_agent({.batch_size = 32});
  RunSchedule on_policy(config, before);
  now.inserts = 1000;
  now.samples = 7000;
  on_policy.begin_training(now);
  now.inserts = 1032;
  CHECK(on_policy.extend_updates(now) == 1);
}

TEST_CASE(
    "A slow learner is granted few updates ahead, so that it ends soon after the time limit") {
  const auto config = schedule_config();
  RunSchedule schedule(config, {});
  Progress now;
  now.inserts = 200;
  CHECK(schedule.extend_updates(now) == 32); // the pace is not known yet
  now.updates = 40;
  now.training_seconds = 40;
  now.updates_per_second = 1;
  CHECK(schedule.extend_updates(now) == 40 + 3);
  now.updates = 60; // suddenly twenty times as fast: need not wait for the mean to follow
  now.training_seconds = 41;
  now.updates_per_second = 3;
  CHECK(schedule.extend_updates(now) == 60 + 40);
}

TEST_CASE("On data, no learner passes the next evaluation or the end") {
  auto config = schedule_config();
  config.workload = [] { return nullptr; };
  config.evaluation.period = 50;
  config.stop.updates = 70;
  RunSchedule schedule(config, {});
  Progress now;
  now.updates_per_second = 1000;
  CHECK(schedule.extend_updates(now) == 50);
  now.updates = 50;
  CHECK(schedule.evaluation_due(now));
  schedule.evaluated(now);
  CHECK_FALSE(schedule.evaluation_due(now));
  CHECK(schedule.extend_updates(now) == 70);
  now.updates = 70;
  CHECK(schedule.complete(now));
  now.updates = 100;
  CHECK_FALSE(schedule.evaluation_due(now));
}

TEST_CASE("With recorded episodes, the updates of a free run are granted past evaluations up to "
          "the end") {
  auto config = schedule_config();
  config.recording = "episodes";
  config.actors.environment = 0;
  config.evaluation.period = 50;
  config.stop.updates = 700;
  for (const bool deterministic : {false, true}) {
    CAPTURE(deterministic);
    config.deterministic = deterministic;
    RunSchedule schedule(config, {});
    Progress now;
    now.updates_per_second = 400;
    if (deterministic) // in rounds, none of which passes an evaluation
      CHECK(schedule.finish_round(now) == 50);
    else
      CHECK(schedule.extend_updates(now) == 432);
    now.updates = 50;
    CHECK(schedule.evaluation_due(now));
    schedule.evaluated(now);
    CHECK_FALSE(schedule.evaluation_due(now));
    now.updates = 690;
    CHECK_FALSE(schedule.complete(now));
    if (!deterministic)
      CHECK(schedule.extend_updates(now) == 700);
    now.updates = 700;
    CHECK(schedule.complete(now));
  }
}

TEST_CASE(
    "A run on data that resumes with another evaluation period evaluates at its next multiple") {
  auto config = schedule_config();
  config.workload = [] { return nullptr; };
  config.evaluation.period = 40;
  config.stop.updates = 1000;
  wire::RunState before;
  before.set_updates(90);
  const RunSchedule schedule(config, before);
  Progress now;
  now.updates = 119;
  CHECK_FALSE(schedule.evaluation_due(now));
  now.updates = 120;
  CHECK(schedule.evaluation_due(now));
}

TEST_CASE("A run that resumes with a shorter evaluation period evaluates at its next multiple") {
  auto config = schedule_config();
  wire::RunState before;
  before.set_environment_steps(2500);
  before.set_next_evaluation(10'000); // of a period of 10'000
  const auto first = [&](bool begun) {
    const RunSchedule schedule(config, before, begun);
    std::int64_t steps = 2500;
    while (!schedule.evaluation_due(at_steps(steps)))
      ++steps;
    return steps;
  };
  CHECK(first(false) == 3000);
  CHECK(first(true) == 10'000); // a new head continues the schedule of the previous one
  config.evaluation.period = 100'000;
  CHECK(first(false) == 10'000);
  before.set_next_evaluation(2400); // its result is missing
  CHECK(first(false) == 2500);
}

TEST_CASE("Environments share the remaining steps, after which each may take all of them") {
  const auto config = schedule_config();
  RunSchedule schedule(config, {});
  CHECK(schedule.steps(0, at_steps(0)) == 500); // 12'000 / 6 / 4
  schedule.paused_at(0, 300);
  schedule.paused_at(1, 100);
  CHECK(schedule.steps(0, at_steps(4800)) == 600); // plus 7200 / 6 / 4
  CHECK(schedule.steps(1, at_steps(4800)) == 400);
  schedule.forget({Role::environment, 1});
  CHECK(schedule.steps(1, at_steps(4800)) == 300);
  CHECK(schedule.steps(0, at_steps(13'000)) == 300);
  CHECK(schedule.share_steps());
  CHECK_FALSE(schedule.share_steps());
  CHECK(schedule.steps(0, at_steps(4800)) == 3000);
}

TEST_CASE("A checkpoint keeps a changed rate limiter until its keys change") {
  auto config = schedule_config();
  RunSchedule schedule(config, {});
  CHECK_FALSE(schedule.ratio());
  wire::RunState plain, saved;
  schedule.write(plain);
  CHECK_FALSE(RunSchedule(config, plain).ratio());
  schedule.ratio() = {.samples_per_insert = 3, .error_buffer = 400};
  schedule.write(saved);
  RunSchedule resumed(config, saved);
  REQUIRE(resumed.ratio());
  CHECK(resumed.ratio()->samples_per_insert == 3);
  CHECK(resumed.ratio()->error_buffer == 400);
  config.replay.samples_per_insert = 5; // resume --set
  CHECK_FALSE(RunSchedule(config, saved).ratio());
}

TEST_CASE("A scaled run has new shares and resumes at its scaled size") {
  const auto config = schedule_config();
  RunSchedule schedule(config, {});
  schedule.scale(4);
  CHECK(schedule.count(Role::environment) == 4);
  CHECK(schedule.steps(0, at_steps(0)) == 250);
  CHECK(schedule.steps_before(at_steps(4800)) == 100);
  wire::RunState state;
  schedule.write(state);
  CHECK(RunSchedule(config, state).count(Role::environment) == 4);
  auto other = config;
  other.actors.environment = 3; // changed since: the new configuration takes precedence
  CHECK(RunSchedule(other, state).count(Role::environment) == 3);
}

TEST_CASE("Rounds grant updates for the items that are complete") {
  auto config = schedule_config();
  config.deterministic = true;
  RunSchedule schedule(config, {});
  REQUIRE(config.in_rounds());
  std::vector<std::int64_t> steps, updates;
  for (int round = 0; round < 4; ++round) {
    steps.push_back(schedule.begin_round());
    updates.push_back(schedule.finish_round({}));
  }
  CHECK(steps == std::vector<std::int64_t>{8, 16, 24, 32});
  // 6 environments with 8 steps per round; 5 * 6 items are incomplete; updates begin at 100 items
  // and amount to 8/32 of the rest.
  CHECK(updates == std::vector<std::int64_t>{0, 0, 3, 15});
  wire::RunState state;
  schedule.write(state);
  RunSchedule resumed(config, state);
  CHECK(resumed.updates() == 15);
  CHECK(resumed.begin_round() == 8);
}

TEST_CASE("Rounds that resume with other replay settings apply them to new items only") {
  auto config = schedule_config();
  config.deterministic = true;
  RunSchedule first(config, {});
  const auto play_round = [](RunSchedule& schedule) {
    schedule.begin_round(); // completes 48 items
    return schedule.finish_round({});
  };
  for (int i = 0; i < 4; ++i)
    play_round(first);
  wire::RunState saved;
  first.write(saved);
  REQUIRE(saved.updates() == 15);
  const auto next = [&](const RunConfig& changed) {
    RunSchedule schedule(changed, saved);
    return play_round(schedule);
  };
  CHECK(next(config) == 27); // 8/32 of all 210 items beyond the first 100
  auto other = config;
  other.agent = learner::make_d4pg_agent({.batch_size = 64});
  CHECK(next(other) == 15 + 6);
  other = config;
  other.replay.minimum_items = 190;
  CHECK(next(other) == 15 + 5);
  other = config;
  other.replay.samples_per_insert = 32;
  CHECK(next(other) == 15 + 48);
  other.replay.samples_per_insert = 5;
  CHECK(next(other) == 15 + 7);
  RunSchedule slower(other, saved);
  play_round(slower);
  wire::RunState later;
  slower.write(later);
  RunSchedule resumed(other, later);
  CHECK(play_round(slower) == 15 + 15); // 5/32 of 96 items
  CHECK(play_round(resumed) == 15 + 15);
}

TEST_CASE("With hindsight, rounds grant updates for the items that exist") {
  auto config = schedule_config();
  config.deterministic = true;
  config.replay.hindsight.goals = 4;
  RunSchedule schedule(config, {});
  CHECK(schedule.counts_items());
  schedule.begin_round();
  Progress now;
  now.inserts = 100;
  CHECK(schedule.finish_round(now) == 0);
  now.inserts = 180;
  CHECK(schedule.finish_round(now) == 20); // 8/32 of the items beyond the first 100
}

TEST_CASE("For a pause one learner stops after the updates that the items are worth") {
  auto config = schedule_config();
  Progress now;
  now.inserts = 180;
  now.updates = 7;
  now.updates_per_second = 1000;
  RunSchedule schedule(config, {});
  schedule.begin_training(now);
  schedule.extend_updates(now);
  CHECK(schedule.updates() > 1000);
  CHECK(schedule.updates_before_pause(now) == 20); // 8/32 of the items beyond the first 100
  schedule.ratio() = RunSchedule::Ratio{.samples_per_insert = 16, .error_buffer = 100};
  CHECK(schedule.updates_before_pause(now) == 40);

  config.learner.replicas = 2;
  RunSchedule several(config, {});
  several.begin_training(now);
  several.extend_updates(now);
  CHECK(several.updates_before_pause(now) == kAllGranted);
}

TEST_CASE(
    "Replicas that do not wait for each other get updates ahead of the fastest, and stop where "
    "they are for a pause") {
  auto config = schedule_config();
  config.learner.replicas = 2;
  Progress now;
  now.inserts = 200;
  now.updates = 10;
  now.most_updates = 500;
  config.learner.strategy = "parameter_server";
  RunSchedule alone(config, {});
  CHECK(alone.extend_updates(now) == 502);
  CHECK(alone.updates_before_pause(now) == 0);
  // With backup workers, a learner that is ahead may wait for a gradient of the others.
  for (const char* strategy : {"multi_worker", "backup_workers backup_workers=1"}) {
    CAPTURE(strategy);
    config.learner.strategy = strategy;
    RunSchedule together(config, {});
    CHECK(together.extend_updates(now) == 12);
    CHECK(together.updates_before_pause(now) == kAllGranted);
  }
}

TEST_CASE("On data, replicas that do not wait for each other all reach an evaluation and the end") {
  auto config = schedule_config();
  config.workload = [] { return nullptr; };
  config.learner.replicas = 2;
  config.learner.strategy = "parameter_server";
  config.evaluation.period = 50;
  config.stop.updates = 70;
  RunSchedule schedule(config, {});
  Progress now;
  now.updates = 40; // a checkpoint
  CHECK(schedule.updates_before_pause(now) == 0);
  now.updates = 50;
  CHECK(schedule.updates_before_pause(now) == kAllGranted);
  schedule.evaluated(now);
  CHECK(schedule.updates_before_pause(now) == 0);
  now.updates = 70;
  CHECK(schedule.updates_before_pause(now) == kAllGranted);
}

TEST_CASE("Evaluations occur at multiples of their period, and steps or minutes end a run") {
  auto config = schedule_config();
  config.stop.minutes = 2;
  RunSchedule schedule(config, {});
  CHECK_FALSE(schedule.evaluation_due(at_steps(999)));
  CHECK(schedule.evaluation_due(at_steps(2500)));
  schedule.evaluated(at_steps(2500));
  CHECK_FALSE(schedule.evaluation_due(at_steps(2999)));
  CHECK(schedule.evaluation_due(at_steps(3000)));
  CHECK_FALSE(schedule.complete(at_steps(11'999)));
  CHECK(schedule.complete(at_steps(12'000)));
  CHECK_FALSE(out_of_time(config, at_steps(12'000)));
  auto late = at_steps(0);
  late.training_seconds = 120;
  CHECK(schedule.complete(late));
  CHECK(out_of_time(config, late));
}

TEST_CASE("A pause ends when training begins") {
  const auto config = schedule_config();
  RunSchedule schedule(config, {});
  CHECK(schedule.paused());
  CHECK_FALSE(schedule.begun());
  Progress now;
  now.updates = 7;
  schedule.begin_training(now);
  CHECK(schedule.training());
  CHECK(schedule.updates() == 7); // at least the updates already made
  schedule.pause();
  CHECK(schedule.paused());
  CHECK(schedule.training()); // until all actors have paused
  schedule.end_training();
  CHECK_FALSE(schedule.training());
  CHECK(schedule.begun());
}

} // namespace
} // namespace troupe::actors

#include "tests/doctest_torch.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "actors/run/metrics_actor.hpp"

namespace troupe::actors {
namespace {

wire::EnvironmentReport environment(int actor, std::uint64_t incarnation, std::int64_t steps,
                                    std::uint64_t version = 0) {
  wire::EnvironmentReport report;
  report.set_actor(actor);
  report.set_incarnation(incarnation);
  report.set_agent_steps(steps);
  report.set_environment_steps(4 * steps);
  report.set_parameter_version(version);
  const std::string stage = "environment.step";
  (*report.mutable_seconds())[stage] = 0.5;
  return report;
}

TEST_CASE("A resumed run's rates count only progress since the resumption") {
  wire::RunState before;
  before.set_environment_steps(460'000);
  before.set_updates(57'000);
  before.set_samples(14'592'000);
  MetricsSum sum(before);
  wire::LearnerReport learner;
  learner.set_updates(57'000);
  sum.add(learner);
  wire::ShardReport shard;
  shard.mutable_stats()->set_sampled(14'592'000);
  sum.add(shard);
  CHECK(sum.progress(0.5, true).updates_per_second == 0);
  learner.set_updates(57'100);
  sum.add(learner);
  shard.mutable_stats()->set_sampled(14'592'000 + 25'600);
  sum.add(shard);
  wire::EnvironmentReport environment;
  environment.set_environment_steps(800);
  sum.add(environment);
  const auto then = sum.progress(0.5, true);
  CHECK(then.updates_per_second == 100);
  CHECK(then.samples_per_second == 25'600);
  CHECK(then.environment_steps_per_second == 800);
}

TEST_CASE("Rates are averaged over ten seconds, so that bursts do not look like stalls") {
  MetricsSum sum({});
  wire::LearnerReport learner;
  Progress now;
  for (int second = 1; second <= 40; ++second) { // 7 updates in every seventh second, then none
    if (second % 7 == 0 && second <= 28)
      learner.set_updates(learner.updates() + 7);
    sum.add(learner);
    now = sum.progress(1, true);
    if (second >= 10 && second <= 28) {
      CHECK(now.updates_per_second >= 0.7);
      CHECK(now.updates_per_second <= 1.4);
    }
  }
  CHECK(now.updates_per_second == 0); // stuck
}

TEST_CASE("Failed spills are summed over shards and over a shard's restarts") {
  MetricsSum sum({});
  const auto add = [&](int number, std::int64_t failed) {
    wire::ShardReport shard;
    shard.set_shard(number);
    shard.mutable_stats()->set_failed_spills(failed);
    sum.add(shard);
    return sum.progress(0.1, true).replay_failed_spills;
  };
  CHECK(add(0, 5) == 5);
  CHECK(add(1, 2) == 7);
  CHECK(add(0, 5) == 7);
  CHECK(add(0, 1) == 8);
  CHECK(add(0, 4) == 11);
}

TEST_CASE("Totals are summed over actors, and a repeated report counts once") {
  MetricsSum sum({});
  for (int i = 0; i < 2; ++i) {
    sum.add(environment(0, 0, 10));
    sum.add(environment(1, 0, 30));
  }
  const Progress now = sum.progress(2.0, true);
  CHECK(now.agent_steps == 40);
  CHECK(now.environment_steps == 160);
  CHECK(now.environment_steps_per_second == doctest::Approx(80));
  CHECK(now.seconds.at("environment.step") == doctest::Approx(1.0));
}

TEST_CASE("The steps of a dead actor stay in the sum beside those of its successor") {
  MetricsSum sum({});
  sum.add(environment(0, 0, 100, 7));
  sum.add(environment(0, 1, 5, 50));
  wire::LearnerReport learner;
  learner.set_updates(60);
  sum.add(learner);
  const Progress now = sum.progress(1.0, true);
  CHECK(now.agent_steps == 105);
  CHECK(now.parameter_lag == doctest::Approx(10)); // the successor's: 60 - 50
}

TEST_CASE("Each living actor's time is reported by itself, for at most 64 of a role") {
  MetricsSum sum({});
  for (int i = 0; i < 70; ++i)
    sum.add(environment(i, 0, 10));
  sum.add(environment(1, 1, 5));
  sum.gone(0);
  wire::LearnerReport learner;
  const std::string update = "learner.update", step = "environment.step";
  (*learner.mutable_seconds())[update] = 3;
  sum.add(learner);
  Progress now = sum.progress(0.1, true);
  REQUIRE(now.actor_times->actors.size() == 65);
  CHECK(now.actor_times->left_out == 5);
  CHECK(now.actor_times->actors[0].role == "environment");
  CHECK(now.actor_times->actors[0].index == 1);
  CHECK(now.actor_times->actors[0].seconds.at(step) == doctest::Approx(0.5)); // of one incarnation
  CHECK(now.actor_times->actors[64].role == "learner");
  CHECK(now.actor_times->actors[64].seconds.at(update) == 3);
  (*learner.mutable_seconds())[update] = 4;
  sum.add(learner);
  now = sum.progress(0.5, true);
  CHECK(now.actor_times->actors[64].seconds.at(update) == 4);
}

TEST_CASE("Queue lengths are sums over the living actors") {
  MetricsSum sum({});
  for (int i = 0; i < 3; ++i) {
    auto actor = environment(i, 0, 10);
    actor.set_insertions(4);
    sum.add(actor);
  }
  auto successor = environment(0, 1, 10);
  successor.set_insertions(1);
  sum.add(successor);
  sum.gone(2);
  for (int i = 0; i < 2; ++i) {
    wire::LearnerReport learner;
    learner.set_replica(i);
    learner.set_batches(2);
    sum.add(learner);
    wire::ShardReport shard;
    shard.set_shard(i);
    shard.set_waiting_insertions(i);
    shard.set_waiting_samples(3);
    sum.add(shard);
  }
  const Progress now = sum.progress(1.0, true);
  CHECK(now.insertions_in_flight == 5); // 1 of the successor and 4 of actor 1
  CHECK(now.ready_batches == 4);
  CHECK(now.waiting_insertions == 1);
  CHECK(now.waiting_samples == 6);
}

TEST_CASE("Updates are counted for the first replica, and for the replica with the most") {
  wire::RunState before;
  before.set_updates(50);
  MetricsSum sum(before);
  CHECK(sum.progress(0.1, true).most_updates == 50);
  wire::LearnerReport learner;
  learner.set_replica(1);
  learner.set_updates(90);
  sum.add(learner);
  Progress now = sum.progress(0.1, true);
  CHECK(now.updates == 50);
  CHECK(now.most_updates == 90);
  learner.set_replica(0);
  learner.set_updates(70);
  sum.add(learner);
  now = sum.progress(0.1, true);
  CHECK(now.updates == 70);
  CHECK(now.most_updates == 90);
}

TEST_CASE("A resumed run's counters continue from its checkpoint") {
  wire::RunState before;
  before.set_agent_steps(1000);
  before.set_environment_steps(4000);
  before.set_training_seconds(60);
  before.set_updates(500);
  MetricsSum sum(before);
  sum.add(environment(0, 1, 10));
  const Progress now = sum.progress(3.0, true);
  CHECK(now.agent_steps == 1010);
  CHECK(now.environment_steps == 4040);
  CHECK(now.updates == 500);
  CHECK(now.training_seconds == doctest::Approx(63));
}

TEST_CASE("A resumed run's frames, and items that its shards did not restore, stay in its totals") {
  wire::RunState before;
  before.set_inserts(1000);
  before.set_samples(8000);
  before.set_frames(500);
  before.set_earlier_inserts(1000);
  before.set_earlier_samples(8000);
  MetricsSum sum(before);
  CHECK(sum.state(sum.progress(0, true)).rows() == 0); // before the first report of a shard
  auto report = environment(0, 1, 10);
  report.set_frames(10);
  sum.add(report);
  wire::ShardReport shard;
  shard.mutable_stats()->set_inserted(20);
  shard.mutable_stats()->set_sampled(160);
  sum.add(shard);
  const Progress now = sum.progress(1, true);
  CHECK(now.inserts == 1020);
  CHECK(now.samples == 8160);
  CHECK(now.frames == 510);
  CHECK(now.samples_per_second == 160);
  CHECK(now.frames_per_second == 10);
  const wire::RunState state = sum.state(now);
  CHECK(state.inserts() == 1020);
  CHECK(state.frames() == 510);
  CHECK(state.earlier_inserts() == 1000);
  CHECK(state.earlier_samples() == 8000);
}

TEST_CASE("Processor seconds count each process once, and the head's only since the run began") {
  const auto time = [](std::uint64_t process, double seconds) {
    wire::ProcessTime made;
    made.set_process(process);
    made.set_processor_seconds(seconds);
    return made;
  };
  wire::RunState before;
  before.set_processor_seconds(1000);
  MetricsSum sum(before, time(7, 50));
  CHECK(sum.progress(1, true).processor_seconds == doctest::Approx(1000));
  sum.add(time(7, 53));
  auto report = environment(0, 1, 10);
  *report.mutable_process() = time(8, 20);
  sum.add(report);
  wire::LearnerReport learner; // from the same process, a moment later
  *learner.mutable_process() = time(8, 21);
  sum.add(learner);
  sum.add(report); // late
  sum.add(time(9, std::numeric_limits<double>::infinity()));
  sum.add(wire::ShardReport());
  const Progress now = sum.progress(1, true);
  CHECK(now.processor_seconds == doctest::Approx(1024));
  CHECK(sum.state(now).processor_seconds() == doctest::Approx(1024));
}

TEST_CASE("Pauses do not count as training time, and the return is NaN before the first episode") {
  MetricsSum sum({});
  CHECK(sum.progress(5.0, false).training_seconds == 0);
  CHECK(std::isnan(sum.progress(1.0, true).episode_return));
}

wire::ParameterServerReport server(int shard, std::uint64_t incarnation, std::int64_t applied,
                                   std::int64_t staleness_sum, double rate_scale_sum) {
  wire::ParameterServerReport report;
  report.set_shard(shard);
  report.set_incarnation(incarnation);
  auto& one = *report.add_optimizers();
  one.set_applied(applied);
  one.set_dropped(2);
  one.set_staleness_sum(staleness_sum);
  one.set_staleness_most(staleness_sum > 0 ? 3 : 0);
  one.set_rate_scale_sum(rate_scale_sum);
  return report;
}

TEST_CASE("Staleness and rates are averaged over the latest gradients, and dropped gradients are "
          "summed") {
  MetricsSum sum({});
  CHECK_FALSE(sum.progress(1.0, true).learner.contains("staleness_mean")); // there are no servers
  auto many = server(0, 0, 10, 20, 10);
  while (many.optimizers_size() < 65)
    many.add_optimizers();
  CHECK_THROWS_WITH_AS(sum.add(many), doctest::Contains("65 are reported"), std::invalid_argument);
  sum.add(server(0, 0, 10, 5, 10));
  sum.add(server(1, 0, 10, 15, 10));
  Progress now = sum.progress(1.0, true);
  CHECK(now.learner.at("staleness_mean") == doctest::Approx(1));
  CHECK(now.learner.at("staleness_max") == 3);
  CHECK(now.learner.at("dropped_gradients") == 4);
  sum.add(server(0, 0, 20, 45, 15)); // ten more with staleness 4, at half the rate
  now = sum.progress(1.0, true);
  CHECK(now.learner.at("staleness_mean") == doctest::Approx(4));
  CHECK(now.learner.at("learning_rate_scale") == doctest::Approx(0.5));
  sum.add(server(0, 1, 0, 0, 0)); // it was restarted: what it did before still counts
  now = sum.progress(1.0, true);
  CHECK(now.learner.at("staleness_mean") == doctest::Approx(4));
  CHECK(now.learner.at("dropped_gradients") == 6);
}

TEST_CASE("The episode return is the mean of the last ten episodes") {
  MetricsSum sum({});
  auto report = environment(0, 0, 1);
  for (int i = 1; i <= 12; ++i) {
    report.add_episode_returns(i);
    report.add_episode_lengths(1000);
  }
  CHECK(sum.add(report).size() == 12);
  const Progress now = sum.progress(1.0, true);
  CHECK(now.episodes == 12);
  CHECK(now.episode_return == doctest::Approx((3 + 12) / 2.0));
}

TEST_CASE("An actor that left still counts in the totals but not in the parameter lag") {
  MetricsSum sum({});
  sum.add(environment(0, 0, 100, 50));
  sum.add(environment(1, 0, 20, 10));
  wire::LearnerReport learner;
  learner.set_updates(60);
  sum.add(learner);
  CHECK(sum.progress(1, true).parameter_lag == doctest::Approx(30));
  sum.gone(1);
  CHECK(sum.progress(1, true).parameter_lag == doctest::Approx(10));
  CHECK(sum.progress(1, true).agent_steps == 120);
  sum.add(environment(1, 1, 0)); // it was restarted and has no parameters yet
  CHECK(sum.progress(1, true).parameter_lag == doctest::Approx(10));
  sum.add(environment(1, 1, 1, 60));
  CHECK(sum.progress(1, true).parameter_lag == doctest::Approx(5));
}

TEST_CASE("Waiting reports group identical actors and use each actor's newest incarnation") {
  MetricsSum sum({});
  const auto add = [&](int actor, std::uint64_t incarnation, const std::string& waiting) {
    auto report = environment(actor, incarnation, 1);
    report.set_waiting(waiting);
    sum.add(report);
  };
  CHECK(sum.waits().empty());
  add(0, 0, "waiting until replay 1 takes 2 insertions");
  add(0, 1, "");
  add(1, 0, "waiting for the learner's parameters");
  add(2, 3, "waiting for the learner's parameters");
  add(3, 0, "waiting for the learner's parameters");
  sum.gone(3);
  wire::LearnerReport learner;
  learner.set_replica(1);
  learner.set_waiting("waiting for samples from replay 2");
  sum.add(learner);
  wire::ShardReport shard;
  shard.set_shard(2);
  shard.set_waiting("1 samples of 32 wait");
  shard.mutable_stats()->set_items(7);
  shard.mutable_stats()->set_sampled(64);
  sum.add(shard);
  CHECK(sum.waits()
        == std::vector<std::string>{"environment 1, 2: waiting for the learner's parameters",
                                    "learner 1: waiting for samples from replay 2",
                                    "replay 2: 1 samples of 32 wait"});
  const Progress progress = sum.progress(1, true);
  REQUIRE(progress.shards.size() == 1);
  CHECK(progress.shards[0].index == 2);
  CHECK(progress.shards[0].items == 7);
  CHECK(progress.shards[0].sampled == 64);
  CHECK(progress.shards[0].waiting == "1 samples of 32 wait");
}

TEST_CASE("A successor continues its predecessor's sums and counts its own processor time from its "
          "start") {
  wire::RunState before;
  before.set_environment_steps(1000);
  wire::ProcessTime own;
  own.set_process(1);
  own.set_processor_seconds(5);
  MetricsSum first(before, own);
  first.add(environment(0, 0, 10));
  auto report = environment(0, 1, 7);
  report.add_episode_returns(3);
  report.add_episode_lengths(40);
  first.add(report);
  wire::ShardReport shard;
  shard.mutable_stats()->set_items(30);
  shard.mutable_stats()->set_failed_spills(2);
  first.add(shard);
  shard.mutable_stats()->set_failed_spills(1); // it was restarted
  first.add(shard);
  wire::ParameterServerReport server;
  auto& optimizer = *server.add_optimizers();
  optimizer.set_applied(4);
  optimizer.set_dropped(3);
  first.add(server);
  own.set_processor_seconds(8);
  first.add(own);
  first.progress(60, true);

  wire::ProcessTime next;
  next.set_process(2);
  next.set_processor_seconds(100);
  MetricsSum second(before, next);
  second.restore(first.record());
  second.add(environment(0, 1, 9)); // it continues
  next.set_processor_seconds(101);
  second.add(next);
  const Progress now = second.progress(1, true);
  CHECK(now.agent_steps == 19);
  CHECK(now.environment_steps == 1000 + 76);
  CHECK(now.episodes == 1);
  CHECK(now.replay_items == 30);
  CHECK(now.replay_failed_spills == 3);
  CHECK(now.learner.at("dropped_gradients") == 3);
  CHECK(now.training_seconds == 61);
  CHECK(now.processor_seconds == 4);
}

} // namespace
} // namespace troupe::actors

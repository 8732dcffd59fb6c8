#include "actors/run/metrics_actor.hpp"

#include "tests/actor_fixture.hpp"

namespace troupe::actors {
namespace {

/// An environment actor that only answers requests for reports.
caf::behavior reports(caf::event_based_actor*, std::int32_t index, std::vector<int>* asked) {
  return {[=](report_atom) {
    ++(*asked)[static_cast<std::size_t>(index)];
    wire::EnvironmentReport report;
    report.set_actor(index);
    report.set_agent_steps(1);
    return encode(report);
  }};
}

struct MetricsFixture : tests::ActorFixture {
  std::vector<int> asked;
  std::vector<caf::actor> actors;
  MetricsActor metrics =
      system.spawn(metrics_actor, caf::actor(self), encode(wire::RunState()), false);

  explicit MetricsFixture(int count) : asked(static_cast<std::size_t>(count)) {
    for (std::int32_t i = 0; i < count; ++i) {
      actors.push_back(system.spawn(reports, i, &asked));
      self->send(metrics, subscribe_atom_v, Role::environment, i, actors.back());
    }
    deliver_all();
  }
  ~MetricsFixture() {
    actors.push_back(caf::actor_cast<caf::actor>(metrics));
    for (const auto& who : actors)
      caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
    deliver_all();
  }
  void pass(int periods) {
    for (int i = 0; i < periods; ++i) {
      scheduler.clock().advance_time(std::chrono::milliseconds(100));
      deliver_all();
    }
  }
  int times_asked() const {
    int sum = 0;
    for (const int times : asked)
      sum += times;
    return sum;
  }
};

/// An environment actor that always sends this report.
caf::behavior repeats(caf::event_based_actor*, ProtoBytes report) {
  return {[=](report_atom) { return report; }};
}

TEST_CASE("A report with an impossible counter or about another actor is ignored with a warning") {
  wire::EnvironmentReport of_another, negative, huge;
  of_another.set_actor(1);
  negative.set_agent_steps(-1);
  huge.set_frames(INT64_MAX);
  for (const auto& report :
       {encode(of_another), encode(negative), encode(huge), ProtoBytes{"\xff"}}) {
    MetricsFixture head(0);
    head.actors.push_back(head.system.spawn(repeats, report));
    head.self->send(head.metrics, subscribe_atom_v, Role::environment, 0, head.actors.back());
    const auto update = head.ask<UpdatePtr>(head.metrics, report_atom_v);
    CHECK(update->progress.agent_steps == 0);
    REQUIRE(update->warnings.size() == 1);
    CHECK(update->warnings[0].starts_with("a report of environment 0 is ignored: "));
  }
}

TEST_CASE("A few actors are polled every time, and a thousand actors in turn") {
  MetricsFixture few(3);
  few.pass(4);
  CHECK(few.asked == std::vector<int>(3, 4));
  MetricsFixture many(1000);
  many.pass(1);
  CHECK(many.times_asked() == 200);
  many.pass(4);
  CHECK(many.asked == std::vector<int>(1000, 1));
}

TEST_CASE("The next head's record is made every two seconds, however often items are counted") {
  MetricsFixture head(0);
  caf::anon_send_exit(head.metrics, caf::exit_reason::user_shutdown);
  head.metrics =
      head.system.spawn(metrics_actor, caf::actor(head.self), encode(wire::RunState()), true);
  head.actors.push_back(head.system.spawn(repeats, encode(wire::ShardReport())));
  head.self->send(head.metrics, subscribe_atom_v, Role::replay, 0, head.actors.back());
  head.deliver_all();
  for (int i = 0; i < 500; ++i) { // 2.5 s
    head.scheduler.clock().advance_time(std::chrono::milliseconds(5));
    head.deliver_all();
  }
  int updates = 0, records = 0;
  while (head.self->has_next_message())
    head.self->receive([&](update_atom, const UpdatePtr& update) {
      ++updates;
      records += update->record ? 1 : 0;
    });
  CHECK(updates > 100);
  CHECK(records == 1);
}

TEST_CASE("The episodes of a request for all reports reach the listener even if it has ended") {
  MetricsFixture head(0);
  wire::EnvironmentReport report;
  report.add_episode_returns(7);
  report.add_episode_lengths(100);
  head.actors.push_back(head.system.spawn(repeats, encode(report)));
  head.self->send(head.metrics, subscribe_atom_v, Role::environment, 0, head.actors.back());
  head.ask<UpdatePtr>(head.metrics, report_atom_v); // the answer is not used
  REQUIRE(head.self->has_next_message());
  std::size_t episodes = 0;
  head.self->receive(
      [&](update_atom, const UpdatePtr& update) { episodes = update->episodes.size(); });
  CHECK(episodes == 1);
}

TEST_CASE("A request for all reports covers every actor, however many there are") {
  MetricsFixture many(1000);
  const auto update = many.ask<UpdatePtr>(many.metrics, report_atom_v);
  CHECK(many.times_asked() == 1000);
  CHECK(update->progress.agent_steps == 1000);
}

} // namespace
} // namespace troupe::actors

#include "actors/supervision/process_table.hpp"

#include "tests/doctest_torch.hpp"

namespace troupe::actors {
namespace {

using Due = ProcessTable::Due;
using Phase = Process::Phase;

const ActorKey kShard{Role::replay, 0};

ProcessTable table(bool own_processes = true) {
  return ProcessTable(
      {.restarts = 3, .restart_minutes = 1, .lost_seconds = 2, .own_processes = own_processes});
}

void pass(ProcessTable& processes, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    processes.tick();
}

TEST_CASE("Three restarts are allowed within a minute, each after a longer pause") {
  struct Row {
    std::int64_t after; // ticks after the last death
    bool restart;
    std::int64_t pause; // ticks until it may start
  };
  auto processes = table();
  std::uint64_t incarnation = 0;
  for (const Row& row : {Row{0, true, 0}, Row{5, true, 2}, Row{5, true, 4}, Row{5, false, 8},
                         Row{400, true, 0}, Row{5, true, 2}}) {
    pass(processes, row.after);
    processes.spawn(kShard, incarnation++, 0);
    const auto death = processes.die(kShard, "killed", false);
    CHECK(death.restart == row.restart);
    CHECK(processes.at(kShard).not_before - processes.now() == row.pause);
    CHECK((death.reason == "killed") == row.restart);
  }
}

TEST_CASE("A pause before a restart is no longer than what waits for it allows") {
  RestartBudget deaths;
  for (const double pause : {0.0, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0}) {
    CHECK(deaths.die(1, {.restarts = 10, .minutes = 1}));
    CHECK_EQ(deaths.delay_seconds(2), doctest::Approx(pause));
  }
  CHECK_EQ(deaths.delay_seconds(), doctest::Approx(10));
  CHECK_EQ(deaths.delay_seconds(30), doctest::Approx(10)); // patience does not make it longer
}

TEST_CASE("An exceeded restart budget is part of the reason") {
  auto processes = table();
  processes.spawn(kShard, 0, 0);
  for (int death = 0; death < 3; ++death)
    processes.die(kShard, "killed", false);
  CHECK(processes.die(kShard, "killed", false).reason
        == "killed; that is death 4 within 1 minutes, actors.restarts allows 3");
  CHECK(processes.recent_deaths(kShard) == 4);
  pass(processes, 400);
  CHECK(processes.recent_deaths(kShard) == 0);
}

TEST_CASE("Whether a role restarts depends on its process and on its failure") {
  struct Row {
    Role role;
    bool own_process, failed, restart;
  };
  for (const Row& row :
       {Row{Role::environment, false, true, true}, Row{Role::evaluator, false, true, true},
        Row{Role::parameter_server, false, true, true}, Row{Role::learner, false, false, false},
        Row{Role::replay, false, false, false}, Row{Role::learner, true, false, true},
        Row{Role::learner, true, true, false}, Row{Role::replay, true, true, false}}) {
    auto processes = table(row.own_process);
    const ActorKey key{row.role, 1};
    processes.spawn(key, 0, 0);
    INFO(role_name(row.role));
    CHECK(processes.die(key, "", row.failed).restart == row.restart);
  }
}

TEST_CASE("A restart waits for its pause") {
  auto processes = table();
  CHECK(processes.spawn(kShard, 0, 0));
  processes.die(kShard, "", false);
  processes.die(kShard, "", false); // pause: 2 ticks
  processes.remove(kShard);
  CHECK_FALSE(processes.spawn(kShard, 1, 0));
  CHECK(processes.due(kShard) == Due::nothing);
  pass(processes, 2);
  CHECK(processes.due(kShard) == Due::start);
  CHECK(processes.due(kShard) == Due::nothing);
}

TEST_CASE("A process that waits to restart is not on its former node") {
  auto processes = table();
  processes.spawn(kShard, 0, 0);
  processes.place(kShard, "a");
  processes.up(kShard, 4242);
  processes.remove(kShard);
  processes.die(kShard, "", false);
  processes.die(kShard, "", false);
  CHECK_FALSE(processes.spawn(kShard, 1, 0));
  CHECK(processes.at(kShard).node.empty());
}

TEST_CASE("A process without a node is retried at every tick") {
  auto processes = table();
  processes.spawn(kShard, 0, 0);
  processes.wait(kShard, "no room");
  CHECK(processes.due(kShard) == Due::start);
  CHECK(processes.at(kShard).problem == "no room");
  processes.place(kShard, "a");
  CHECK(processes.due(kShard) == Due::nothing);
  CHECK(processes.at(kShard).node == "a");
}

TEST_CASE("A process asked to leave is killed after ten seconds") {
  auto processes = table();
  processes.spawn(kShard, 0, 0);
  CHECK_FALSE(processes.leave(kShard)); // it is not up: nothing to wait for
  processes.up(kShard, 4242);
  CHECK(processes.any_up());
  CHECK(processes.leave(kShard));
  CHECK_FALSE(processes.any_up());
  pass(processes, 50);
  CHECK(processes.due(kShard) == Due::nothing);
  processes.tick();
  CHECK(processes.due(kShard) == Due::kill);
  processes.remove(kShard);
  CHECK(processes.phase(kShard) == Phase::absent);
}

TEST_CASE("A process of the previous head that does not join in time is missing") {
  auto processes = table();
  processes.expect(kShard, 4, 77);
  CHECK(processes.at(kShard).incarnation == 4);
  pass(processes, 10);
  CHECK(processes.due(kShard) == Due::nothing);
  pass(processes, 1);
  CHECK(processes.due(kShard) == Due::missing);
  processes.remove(kShard);
  CHECK(processes.due(kShard) == Due::nothing);
  processes.expect(kShard, 5, 0);
  processes.up(kShard, 78);
  pass(processes, 100);
  CHECK(processes.due(kShard) == Due::nothing);
}

} // namespace
} // namespace troupe::actors

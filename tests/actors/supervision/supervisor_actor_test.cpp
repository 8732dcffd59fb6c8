#include "tests/actors/supervision/supervisor_fixture.hpp"

namespace troupe::actors {
namespace {

TEST_CASE_FIXTURE(SupervisorFixture, "Only the incarnation that was started may join") {
  spawn(Role::environment, 3);
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].role == "environment");
  CHECK(orders[0].epoch == kEpoch);
  CHECK(orders[0].incarnation == 3);
  CHECK_FALSE(greeted(life(Role::environment, 2)));
  CHECK_FALSE(greeted(life(Role::environment, 3, kEpoch - 1)));
  CHECK_FALSE(greeted(life(Role::replay, 3)));
  CHECK_FALSE(greeted(ProtoBytes{"garbage"}));
  CHECK(greeted(life(Role::environment, 3)));
  join(Role::environment, 2, idle);
  CHECK_FALSE(started());
  join(Role::environment, 3, idle);
  CHECK(started());
}

TEST_CASE_FIXTURE(SupervisorFixture,
                  "A process that is frozen for long is lost, and one that continues is not") {
  spawn(Role::replay, 0);
  join(Role::replay, 0, idle);
  REQUIRE(started());
  for (int round = 0; round < 3; ++round) {
    freeze(processes[0]);
    pass(2);
    freeze(processes[0], false);
    pass(1);
  }
  CHECK_FALSE(loss());
  freeze(processes[0]);
  pass(2);
  CHECK_FALSE(loss());
  pass(1);
  const auto told = loss();
  REQUIRE(told);
  CHECK(told->reason == "its process was frozen for 2 s");
  CHECK(told->restart);
  wait_until_dead(processes[0]);
}

TEST_CASE_FIXTURE(SupervisorFixture, "A process that is given up is asked to end") {
  spawn(Role::replay, 0);
  const caf::actor actor = system.spawn(idle);
  self->send(supervisor, joined_atom_v, life(Role::replay, 0), actor, caf::actor(self),
             std::string("tcp://127.0.0.1:1"));
  deliver_all();
  REQUIRE(started());
  self->send_exit(actor, caf::exit_reason::kill);
  deliver_all();
  bool asked = false; // in case its node is frozen
  self->receive([&](stop_atom) { asked = true; });
  CHECK(asked);
}

TEST_CASE_FIXTURE(SupervisorFixture, "Restarts are limited within a period") {
  std::size_t life_number = 0;
  const auto die = [&] {
    spawn(Role::learner, life_number);
    pass(3); // longer than any pause before a restart
    REQUIRE(processes.size() == life_number + 1);
    ::kill(processes.back(), SIGKILL);
    wait_until_dead(processes.back());
    pass(1);
    ++life_number;
    const auto told = loss();
    REQUIRE(told);
    return *told;
  };
  CHECK(die().restart);
  CHECK(die().restart);
  const auto third = die();
  CHECK_FALSE(third.restart);
  CHECK(third.reason
        == "its process was killed by signal 9; that is death 3 within 1 minutes, actors.restarts "
           "allows 2");
  pass(61);
  CHECK(die().restart);
}

TEST_CASE_FIXTURE(SupervisorFixture,
                  "The first restart is immediate, and later ones come after growing pauses") {
  std::vector<int> pauses; // in steps of the clock
  const auto step = [&] {
    scheduler.clock().advance_time(std::chrono::milliseconds(200));
    deliver_all();
  };
  for (std::uint64_t number = 0; number < 4; ++number) {
    spawn(Role::learner, number);
    pauses.push_back(0);
    for (; processes.size() == number && pauses.back() < 50; ++pauses.back())
      step();
    REQUIRE(processes.size() == number + 1);
    ::kill(processes.back(), SIGKILL);
    wait_until_dead(processes.back());
    std::optional<Loss> told;
    for (int left = 50; left > 0 && !told; --left) {
      step();
      told = loss();
    }
    REQUIRE(told);
  }
  CHECK(pauses[0] == 0);
  CHECK(pauses[1] == 0);
  CHECK(pauses[2] > 0);
  CHECK(pauses[3] > pauses[2]);
}

TEST_CASE_FIXTURE(SupervisorFixture,
                  "A failed learner is not restarted, but a failed environment is") {
  for (const Role role : {Role::learner, Role::environment}) {
    spawn(role, 0);
    self->send(join(role, 0, refuses), tick_atom_v);
    REQUIRE(started());
    deliver_all();
    const auto told = loss();
    REQUIRE(told);
    CHECK(told->reason.find("NaN") != std::string::npos);
    CHECK(told->restart == (role == Role::environment));
  }
}

TEST_CASE_FIXTURE(SupervisorFixture,
                  "A process that leaves on request is not lost and uses no restart") {
  for (std::uint64_t number = 0; number < 5; ++number) { // more than the budget has
    spawn(Role::environment, number);
    REQUIRE(processes.size() == number + 1);
    join(Role::environment, number, idle);
    REQUIRE(started());
    auto left =
        self->request(supervisor, caf::infinite, leave_atom_v, Role::environment, std::int32_t{0});
    deliver_all();
    CHECK_FALSE(self->has_next_message()); // its actor has ended, its process has not
    ::kill(processes.back(), SIGKILL);     // the process ends after its actor
    wait_until_dead(processes.back());
    pass(1);
    left.receive([](done_atom) {}, [](const caf::error&) { FAIL("it did not leave"); });
    CHECK_FALSE(loss());
  }
}

TEST_CASE_FIXTURE(SupervisorFixture,
                  "A process that does not leave in time is killed and counts as having left") {
  spawn(Role::replay, 0);
  join(Role::replay, 0, idle);
  REQUIRE(started());
  auto left = self->request(supervisor, caf::infinite, leave_atom_v, Role::replay, std::int32_t{0});
  for (int tick = 0; tick < 60 && !self->has_next_message(); ++tick) {
    deliver_all();
    scheduler.clock().advance_time(std::chrono::milliseconds(200));
  }
  deliver_all();
  left.receive([](done_atom) {}, [](const caf::error&) { FAIL("it did not leave"); });
  wait_until_dead(processes[0]);
  CHECK_FALSE(loss());
}

TEST_CASE_FIXTURE(SupervisorFixture, "New processes get the scaled number of environment actors") {
  const auto wired = [&](std::uint64_t incarnation) {
    spawn(Role::environment, incarnation);
    return decode<wire::Wiring>(
        ask<ProtoBytes>(supervisor, hello_atom_v, life(Role::environment, incarnation)));
  };
  CHECK(wired(0).environments() == 2);
  CHECK(ask<std::string>(supervisor, scale_atom_v, std::int32_t{5}).empty());
  CHECK(wired(1).environments() == 5);
  CHECK_FALSE(ask<std::string>(supervisor, scale_atom_v, std::int32_t{0}).empty());
  CHECK(wired(2).environments() == 5);
}

TEST_CASE_FIXTURE(SupervisorFixture,
                  "A joining process gets the endpoints that changed since its greeting") {
  const auto shard_joins = [&](std::uint64_t incarnation, const std::string& endpoint) {
    spawn(Role::replay, incarnation);
    self->send(supervisor, joined_atom_v, life(Role::replay, incarnation), system.spawn(idle),
               process, endpoint);
    deliver_all();
  };
  shard_joins(0, "tcp://127.0.0.1:1 key");
  spawn(Role::environment, 1);
  REQUIRE(greeted(life(Role::environment, 1)));
  shard_joins(1, "tcp://127.0.0.1:1 another");
  self->send(supervisor, joined_atom_v, life(Role::environment, 1), system.spawn(idle),
             caf::actor(self), std::string());
  deliver_all();
  std::string told;
  self->receive(
      [&](wire_atom, const ProtoBytes& wiring) {
        told = decode<wire::Wiring>(wiring).shard_endpoints(0);
      },
      caf::after(std::chrono::seconds(0)) >> [] {});
  CHECK(told == "tcp://127.0.0.1:1 another");
}

struct LearnersFixture : SupervisorFixture {
  LearnersFixture() : SupervisorFixture(2) {}
};

TEST_CASE_FIXTURE(LearnersFixture, "A learner is notified of a lost learner, and the store of "
                                   "their group refuses the old members") {
  std::vector<caf::actor> learners;
  for (const std::int32_t index : {0, 1}) {
    spawn(Role::learner, 0, index);
    learners.push_back(system.spawn(refuses));
    self->send(supervisor, joined_atom_v, life(Role::learner, 0, kEpoch, index), learners.back(),
               index == 0 ? caf::actor(self) : process, std::string());
    deliver_all();
  }
  const auto told = [&] {
    std::string words;
    self->receive([&](lost_atom, const std::string& why) { words = why; },
                  caf::after(std::chrono::seconds(0)) >> [] {});
    return words;
  };
  const auto count = [&](std::uint64_t incarnation,
                         std::int32_t index) { // counter in the group's store; -1: refused
    wire::StoreRequest add;
    add.set_operation(wire::StoreRequest::ADD);
    add.add_keys("count");
    add.set_number(1);
    auto pending = self->request(supervisor, caf::infinite, store_atom_v,
                                 life(Role::learner, incarnation, kEpoch, index), encode(add));
    deliver_all();
    std::int64_t number = -1;
    pending.receive(
        [&](const ProtoBytes& got) { number = decode<wire::StoreAnswer>(got).number(); },
        [](const caf::error&) {});
    return number;
  };
  CHECK(told().empty());
  CHECK(count(0, 0) == 1);
  CHECK(count(0, 1) == 2);
  self->send(learners[1], tick_atom_v);
  deliver_all();
  CHECK(told() == "learner 1 is lost: NaN");
  CHECK(count(0, 0) == -1); // a lost learner's group is closed to its old members
  spawn(Role::learner, 1, 1);
  CHECK(count(0, 1) == -1);
  CHECK(count(1, 1) == 1);
  caf::anon_send_exit(learners[0], caf::exit_reason::user_shutdown);
  deliver_all();
}

TEST_CASE_FIXTURE(tests::ActorFixture, "Learners start only when each of them has a place") {
  bool pin = true, shares_cores = false;
  SUBCASE("They are pinned to their cores") {}
  SUBCASE("They are not pinned to their cores") {
    pin = false;
  }
  SUBCASE("They are not pinned on a node without cores of its own") {
    shares_cores = true;
  }
  RunConfig run;
  run.learner.replicas = 2;
  run.supervision.lost_seconds = 3600;
  Placer placer({{"replay", {}},
                 {"parameter_server", {}},
                 {"learner", {.cores = 1}},
                 {"environment", {}},
                 {"evaluator", {}}});
  const NodeResources host{.name = "host",
                           .address = "10.0.0.7",
                           .numa = {{.cores = {0, 1, 2, 3, 4, 5, 6, 7}}},
                           .counts = true,
                           .shares_cores = shares_cores};
  placer.add_node(host);
  const auto supervisor = system.spawn(
      supervisor_actor, SupervisorOptions{.config = run,
                                          .transitions = {},
                                          .listener = caf::actor(self),
                                          .deployment = {.nodes = {{.placer = placer, .pin = pin}}},
                                          .head_port = 4242,
                                          .epoch = kEpoch});
  const auto pass = [&] {
    scheduler.clock().advance_time(std::chrono::milliseconds(200));
    deliver_all();
  };
  auto joined = self->request(supervisor, caf::infinite, node_atom_v, encode(node_info(host, 1)),
                              caf::actor(self), system.spawn(idle));
  deliver_all();
  joined.receive([](const ProtoBytes&) {}, [](const caf::error&) { FAIL("the node is refused"); });
  pass();
  const auto spawn = [&](int index, std::uint64_t incarnation) {
    self->send(supervisor, spawn_atom_v, Role::learner, index, incarnation, std::int64_t{0});
    pass();
  };
  std::string cores;         // of the last process ordered
  const auto ordered = [&] { // processes ordered from the node, by index
    std::vector<int> started;
    bool more = true;
    while (more)
      self->receive(
          [&](spawn_atom, const ProtoBytes& order) {
            started.push_back(decode<wire::ProcessStart>(order).life().index());
            cores = decode<wire::ProcessStart>(order).cores();
          },
          [](stop_atom, Role, std::int32_t) {},
          caf::after(std::chrono::seconds(0)) >> [&] { more = false; });
    return started;
  };
  spawn(1, 0); // all have places from the beginning
  spawn(0, 0);
  CHECK(ordered() == std::vector<int>{1, 0});
  CHECK(cores.empty() != (pin && !shares_cores));
  for (const std::int32_t index : {0, 1})
    self->send(supervisor, stop_atom_v, Role::learner, index);
  spawn(1, 1); // learner 0 is not running, so this one waits for it
  pass();
  CHECK(ordered().empty());
  spawn(0, 1);
  pass();
  CHECK(ordered() == std::vector<int>{0, 1});
  auto wiring = ask<ProtoBytes>(supervisor, hello_atom_v, [] {
    wire::Life life;
    life.set_role("learner");
    life.set_index(1);
    life.set_epoch(kEpoch);
    life.set_incarnation(1);
    return encode(life);
  }());
  CHECK(decode<wire::Wiring>(wiring).learner_nodes(0) == "host");
  self->send(supervisor, stop_atom_v);
  for (int second = 0; second < 130; ++second)
    pass();
  caf::anon_send_exit(supervisor, caf::exit_reason::user_shutdown);
  deliver_all();
}

} // namespace
} // namespace troupe::actors

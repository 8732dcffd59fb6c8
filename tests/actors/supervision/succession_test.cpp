#include "tests/actors/supervision/supervisor_fixture.hpp"

namespace troupe::actors {
namespace {

struct SuccessionFixture : SupervisorFixture {
  int living = start_idle_process(); // a process of the previous head

  SuccessionFixture() {
    caf::anon_send_exit(supervisor, caf::exit_reason::user_shutdown);
    deliver_all();
    wire::HeadRecord before;
    add(before, Role::replay, 2);
    add(before, Role::evaluator, 0);
    auto successor = options(1);
    successor.succeeds = std::make_shared<const wire::HeadRecord>(before);
    supervisor = system.spawn(supervisor_actor, successor);
  }
  ~SuccessionFixture() {
    ::kill(living, SIGKILL);
    ::waitpid(living, nullptr, 0);
  }
  static void add(wire::HeadRecord& record, Role role, std::uint64_t incarnation) {
    auto& process = *record.add_processes();
    process.set_role(role_name(role));
    process.set_incarnation(incarnation);
    process.set_endpoint("tcp://127.0.0.1:1");
  }
  caf::actor come(Role role, std::uint64_t incarnation, std::uint64_t epoch = kEpoch) {
    auto who = decode<wire::Life>(life(role, incarnation, epoch));
    who.set_process(living);
    const caf::actor mine = system.spawn(idle);
    self->monitor(mine);
    self->send(supervisor, joined_atom_v, encode(who), mine, process,
               std::string("tcp://127.0.0.1:1"));
    deliver_all();
    return mine;
  }
  bool is_sent_away(const caf::actor& who) {
    bool down = false;
    self->receive([&](const caf::down_msg& told) { down = told.source == who.address(); },
                  caf::after(std::chrono::seconds(0)) >> [] {});
    return down;
  }
};

/// A successor whose run has nodes. The test itself acts as the NodeActor of "host".
struct NodeSuccessionFixture : SuccessionFixture {
  caf::actor agent = system.spawn(idle);
  NodeResources host{
      .name = "host", .address = "10.0.0.7", .numa = {{.cores = {0, 1, 2, 3, 4, 5, 6, 7}}}};

  NodeSuccessionFixture() {
    caf::anon_send_exit(supervisor, caf::exit_reason::user_shutdown);
    deliver_all();
    Placer placer({{"learner", {}},
                   {"replay", {.cores = 1}},
                   {"parameter_server", {}},
                   {"environment", {}},
                   {"evaluator", {}}});
    placer.add_node(host);
    wire::HeadRecord before;
    add(before, Role::replay, 2);
    add(before, Role::evaluator, 0);
    auto successor = options(1);
    successor.deployment = {.nodes = {{.placer = placer}}};
    successor.succeeds = std::make_shared<const wire::HeadRecord>(before);
    supervisor = system.spawn(supervisor_actor, successor);
  }
  ~NodeSuccessionFixture() { caf::anon_send_exit(agent, caf::exit_reason::user_shutdown); }

  static void lives(wire::NodeInfo& info, Role role, std::uint64_t incarnation) {
    auto& one = *info.add_living();
    *one.mutable_life() = decode<wire::Life>(life(role, incarnation));
    one.set_cores("5");
  }
  /// Returns the head's refusal, or "".
  std::string enter(const wire::NodeInfo& there, std::uint64_t epoch) {
    auto info = node_info(host, 1);
    info.MergeFrom(there);
    info.set_epoch(epoch);
    auto pending = self->request(supervisor, caf::infinite, node_atom_v, encode(info),
                                 caf::actor(self), agent);
    deliver_all();
    std::string refusal;
    pending.receive([](const ProtoBytes&) {},
                    [&](const caf::error& error) { refusal = explain(system, error); });
    return refusal;
  }
  /// The orders to this node and the reported losses, as text.
  std::vector<std::string> told() {
    std::vector<std::string> words;
    bool more = true;
    while (more)
      self->receive([&](stop_atom, Role role,
                        std::int32_t) { words.push_back(std::string("end ") + role_name(role)); },
                    [&](spawn_atom, const ProtoBytes& order) {
                      words.push_back("start " + decode<wire::ProcessStart>(order).life().role());
                    },
                    [&](lost_atom, Role role, std::int32_t, const std::string& reason, bool) {
                      words.push_back(std::string("lost ") + role_name(role) + ": " + reason);
                    },
                    caf::after(std::chrono::seconds(0)) >> [&] { more = false; });
    return words;
  }
  void tick() {
    scheduler.clock().advance_time(std::chrono::milliseconds(200));
    deliver_all();
  }
};

TEST_CASE_FIXTURE(NodeSuccessionFixture,
                  "A node rejoins with its processes, and any that it no longer has are lost") {
  wire::NodeInfo there;
  lives(there, Role::replay, 2);
  lives(there, Role::learner, 0); // unknown to the previous head
  REQUIRE(enter(there, kEpoch).empty());
  tick();
  CHECK(told()
        == std::vector<std::string>{"end learner",
                                    "lost evaluator: its process ended while there was no head"});
  come(Role::replay, 2);
  CHECK(started());
  spawn(Role::evaluator, 1);
  tick();
  CHECK(told().back() == "start evaluator");
}

TEST_CASE_FIXTURE(NodeSuccessionFixture, "An outdated incarnation is ended on its node") {
  wire::NodeInfo there;
  lives(there, Role::replay, 1);
  REQUIRE(enter(there, kEpoch).empty());
  tick();
  CHECK(told()
        == std::vector<std::string>{"end replay",
                                    "lost replay: its process ended while there was no head",
                                    "lost evaluator: its process ended while there was no head"});
}

TEST_CASE_FIXTURE(NodeSuccessionFixture, "A node of another head's epoch is refused") {
  CHECK(enter({}, kEpoch + 1).find("another head leads the run now") != std::string::npos);
  CHECK(enter({}, 0).empty()); // a new node
}

TEST_CASE_FIXTURE(SuccessionFixture, "A successor also notices that an adopted process is frozen") {
  come(Role::replay, 2);
  REQUIRE(started());
  pass(3);
  while (loss()) { // of the evaluator, which has not come
  }
  freeze(living);
  pass(3);
  const auto told = loss();
  REQUIRE(told);
  CHECK(told->reason == "its process was frozen for 2 s");
}

TEST_CASE_FIXTURE(SuccessionFixture,
                  "A successor admits only the known incarnations of its epoch") {
  CHECK(is_sent_away(come(Role::replay, 1)));
  CHECK(is_sent_away(come(Role::replay, 3)));
  CHECK(is_sent_away(come(Role::replay, 2, kEpoch - 1)));
  CHECK(is_sent_away(come(Role::learner, 0)));
  CHECK_FALSE(started());
  come(Role::replay, 2);
  CHECK(started());
  CHECK(is_sent_away(come(Role::replay, 2)));
  CHECK(orders.empty());
}

TEST_CASE_FIXTURE(SuccessionFixture, "A process that does not rejoin is lost and may restart") {
  for (int tick = 0; tick < 15 && !self->has_next_message(); ++tick) {
    scheduler.clock().advance_time(std::chrono::milliseconds(200));
    deliver_all();
  }
  const auto told = loss();
  REQUIRE(told);
  CHECK(told->reason == "its process did not join the new head within 2 s");
  CHECK(told->restart);
}

TEST_CASE_FIXTURE(SuccessionFixture,
                  "A process that was taken over is watched and is killed on request") {
  come(Role::replay, 2);
  REQUIRE(started());
  SUBCASE("It ends") {
    ::kill(living, SIGKILL);
    siginfo_t how{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(living), &how, WEXITED | WNOWAIT) == 0);
    pass(1);
    const auto told = loss();
    REQUIRE(told);
    CHECK(told->reason == "its process ended");
  }
  SUBCASE("It is killed") {
    self->send(supervisor, stop_atom_v, Role::replay, std::int32_t{0});
    deliver_all();
    siginfo_t how{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(living), &how, WEXITED | WNOWAIT) == 0);
    CHECK(how.si_status == SIGKILL);
  }
}

} // namespace
} // namespace troupe::actors

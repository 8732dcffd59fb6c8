#include "tests/actors/supervision/supervisor_fixture.hpp"

namespace troupe::actors {
namespace {

struct SuccessionFixture : SupervisorFixture {
  int living = start_idle_process(); // of the head before

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

TEST_CASE_FIXTURE(SuccessionFixture,
                  "a successor lets in the incarnations of its epoch that it knows, no others") {
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

TEST_CASE_FIXTURE(SuccessionFixture, "a process that does not come is lost and may restart") {
  for (int tick = 0; tick < 15 && !self->has_next_message(); ++tick) {
    scheduler.clock().advance_time(std::chrono::milliseconds(200));
    deliver_all();
  }
  const auto told = loss();
  REQUIRE(told);
  CHECK(told->reason == "its process did not come to the new head within 2 s");
  CHECK(told->restart);
}

TEST_CASE_FIXTURE(
    SuccessionFixture,
    "the end of a process that was taken over is noticed, and it is killed as asked") {
  come(Role::replay, 2);
  REQUIRE(started());
  SUBCASE("it ends") {
    ::kill(living, SIGKILL);
    siginfo_t how{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(living), &how, WEXITED | WNOWAIT) == 0);
    pass(1);
    const auto told = loss();
    REQUIRE(told);
    CHECK(told->reason == "its process ended");
  }
  SUBCASE("it is killed") {
    self->send(supervisor, stop_atom_v, static_cast<std::uint8_t>(Role::replay), std::int32_t{0});
    deliver_all();
    siginfo_t how{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(living), &how, WEXITED | WNOWAIT) == 0);
    CHECK(how.si_status == SIGKILL);
  }
}

} // namespace
} // namespace troupe::actors

// Messages of processes, nodes and operators, mutated at random. Each is refused or ignored, no
// other process is lost because of it, and honest messages are answered as before.
#include <google/protobuf/stubs/logging.h>

#include "actors/roles/rendezvous_actor.hpp"
#include "actors/run/control_actor.hpp"
#include "env/random.hpp"
#include "learner/agents/d4pg/d4pg.hpp"
#include "tests/actors/supervision/supervisor_fixture.hpp"

namespace troupe::actors {
namespace {

constexpr int kRounds = 3000;

/// Mutates bytes by flips, cuts, copies and insertions: at least one change.
std::string changed(std::string bytes, env::Random& random) {
  const std::string before = bytes;
  const auto below = [&](std::size_t limit) {
    return static_cast<std::size_t>(random.bits() % std::max<std::size_t>(limit, 1));
  };
  while (bytes == before)
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
      const std::size_t at = below(bytes.size() + 1);
      const std::size_t count = below(std::min<std::size_t>(bytes.size() - at, 12) + 1);
      switch (below(5)) {
      case 0:
        bytes.insert(at, 1, static_cast<char>(random.bits()));
        break;
      case 1:
        bytes.erase(at, count);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, count));
        break;
      case 3:
        bytes.insert(at, std::string(9, '\xff') + '\x01');
        break; // a varint of 64 bits
      default:
        if (at < bytes.size())
          bytes[at] = static_cast<char>(random.bits());
      }
    }
  return bytes;
}

struct HostileFixture : SupervisorFixture {
  env::Random random{11};

  HostileFixture() : SupervisorFixture(2) { google::protobuf::SetLogHandler(nullptr); }

  ProtoBytes bad(const ProtoBytes& good) { return {changed(good.bytes, random)}; }

  /// A mutated life that matches no process. Unknown fields and field order do not make it
  /// different.
  ProtoBytes bad_life(const ProtoBytes& good) {
    for (;;) {
      const ProtoBytes made = bad(good);
      wire::Life then, now;
      REQUIRE(then.ParseFromString(good.bytes));
      if (!now.ParseFromString(made.bytes) || now.role() != then.role()
          || now.epoch() != then.epoch() || now.incarnation() != then.incarnation())
        return made;
    }
  }
};

TEST_CASE_FIXTURE(HostileFixture, "A supervisor ignores messages of unknown incarnations") {
  const ProtoBytes environment = life(Role::environment, 3);
  const ProtoBytes learner = life(Role::learner, 0, kEpoch, 1);
  spawn(Role::environment, 3);
  spawn(Role::learner, 0, 0);
  spawn(Role::learner, 0, 1);
  join(Role::environment, 3, idle);
  REQUIRE(started());
  wire::StoreRequest set;
  set.add_keys("key");
  set.set_value("value");
  wire::NodeInfo node;
  node.set_name("host");
  for (int i = 0; i < kRounds; ++i) {
    const ProtoBytes nobody = bad_life(i % 2 == 0 ? environment : learner);
    CHECK_FALSE(greeted(nobody));
    self->send(supervisor, joined_atom_v, nobody, system.spawn(idle), process, std::string());
    self->send(supervisor, lost_atom_v, nobody, std::string("it says"));
    self->request(supervisor, caf::infinite, store_atom_v, nobody, encode(set));
    self->request(supervisor, caf::infinite, store_atom_v, learner, bad(encode(set)));
    self->request(supervisor, caf::infinite, node_atom_v, bad(encode(node)), process, process);
    self->request(supervisor, caf::infinite, control_atom_v, bad(encode(set)));
    self->send(supervisor, node_atom_v, changed("host", random), random.bits(), process);
    deliver_all();
    CHECK_FALSE(loss());
  }
  CHECK(greeted(learner));
  set.set_operation(wire::StoreRequest::ADD);
  set.set_keys(0, "count");
  set.set_number(2);
  CHECK(decode<wire::StoreAnswer>(ask<ProtoBytes>(supervisor, store_atom_v, learner, encode(set)))
            .number()
        == 2);
}

TEST_CASE_FIXTURE(HostileFixture, "Malformed operator requests do not disturb a run's control") {
  RunConfig operated;
  operated.agent = learner::make_d4pg_agent({});
  const auto control = system.spawn(
      control_actor,
      ControlOptions{.config = operated, .head = process, .epoch = kEpoch, .folder = "/runs/a"});
  wire::SupervisorReport report;
  report.add_processes()->set_role("environment");
  wire::ControlRequest scale, restart;
  scale.mutable_scale()->set_role("environment");
  scale.mutable_scale()->set_count(5);
  restart.mutable_restart()->set_role("environment/0");
  restart.set_folder("/runs/a");
  for (int i = 0; i < kRounds; ++i) {
    self->request(control, caf::infinite, control_atom_v, bad(encode(i % 2 == 0 ? scale : restart)),
                  bad(encode(report)));
    deliver_all();
  }
  wire::ControlRequest status;
  status.set_status(true);
  CHECK(decode<wire::RunStatus>(
            ask<ProtoBytes>(control, control_atom_v, encode(status), encode(report)))
            .epoch()
        == kEpoch);
  caf::anon_send_exit(control, caf::exit_reason::user_shutdown);
  deliver_all();
}

} // namespace
} // namespace troupe::actors

#include "tests/actor_fixture.hpp"

#include "actors/roles/parameter_actor.hpp"

namespace troupe::actors {
namespace {

ParametersPtr version(std::uint64_t number) {
  return std::make_shared<const Parameters>(Parameters{.version = number, .values = {1.0F}});
}

struct ParameterFixture : tests::ActorFixture {
  std::vector<std::uint64_t> sent_on;
  ParameterActor parameters = system.spawn(
      parameter_actor, std::function<void(const Parameters&)>(
                           [this](const Parameters& p) { sent_on.push_back(p.version); }));

  std::vector<std::uint64_t> received() {
    std::vector<std::uint64_t> versions;
    deliver_all();
    while (self->has_next_message())
      self->receive([&](publish_atom, const ParametersPtr& p) { versions.push_back(p->version); });
    return versions;
  }
};

TEST_CASE_FIXTURE(
    ParameterFixture,
    "A late subscriber gets the newest parameters at once and later ones as they arrive") {
  self->send(parameters, publish_atom_v, version(1));
  self->send(parameters, publish_atom_v, version(2));
  self->send(parameters, subscribe_atom_v, caf::actor(self));
  CHECK(received() == std::vector<std::uint64_t>{2});
  self->send(parameters, publish_atom_v, version(3));
  CHECK(received() == std::vector<std::uint64_t>{3});
}

TEST_CASE_FIXTURE(ParameterFixture, "Older parameters never replace newer ones") {
  self->send(parameters, subscribe_atom_v, caf::actor(self));
  for (const std::uint64_t number : {5U, 4U, 6U})
    self->send(parameters, publish_atom_v, version(number));
  CHECK(received() == std::vector<std::uint64_t>{5, 6});
  CHECK(sent_on == std::vector<std::uint64_t>{5, 6});
}

} // namespace
} // namespace troupe::actors

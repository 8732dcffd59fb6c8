#include "tests/actor_fixture.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

#include <cmath>
#include <limits>

#include "actors/protocol/messages.pb.h"

namespace troupe::actors {
namespace {

template <class T>
caf::message over_the_wire(caf::actor_system& system, const T& value) {
  caf::message out = caf::make_message(value);
  std::vector<char> bytes;
  caf::binary_serializer sink(system, bytes);
  REQUIRE_FALSE(sink(out));
  caf::message in;
  caf::binary_deserializer source(system, bytes);
  REQUIRE_FALSE(source(in));
  return in;
}

TEST_CASE_FIXTURE(tests::ActorFixture,
                  "Encoded numbers survive the wire, including values that CAF corrupts") {
  wire::EvaluationResult numbers;
  for (const double value : {1.5, std::numeric_limits<double>::infinity(), std::nan(""), 5e-324})
    numbers.add_returns(value);

  const caf::message in = over_the_wire(system, encode(numbers));

  REQUIRE(in.match_elements<ProtoBytes>());
  const auto back = decode<wire::EvaluationResult>(in.get_as<ProtoBytes>(0));
  REQUIRE(back.returns_size() == 4);
  CHECK(back.returns(0) == 1.5);
  CHECK(std::isinf(back.returns(1)));
  CHECK(std::isnan(back.returns(2)));
  CHECK(back.returns(3) == 5e-324);
}

TEST_CASE_FIXTURE(tests::ActorFixture, "A fault keeps its text over the wire") {
  const caf::message in = over_the_wire(
      system, caf::make_error(Fault::failed, std::string("model cheetah is unstable")));

  REQUIRE(in.match_elements<caf::error>());
  CHECK((in.get_as<caf::error>(0) == Fault::failed));
  CHECK(explain(system, in.get_as<caf::error>(0)).find("model cheetah is unstable")
        != std::string::npos);
}

TEST_CASE("Bytes that do not decode are refused with their count and the expected type") {
  CHECK_THROWS_WITH_AS(
      decode<wire::EnvironmentReport>(ProtoBytes{"\xff\xff\xff"}),
      doctest::Contains("3 bytes that are not a troupe.actors.wire.EnvironmentReport"),
      std::runtime_error);
}

TEST_CASE("Roles are found by name, and an unknown name is refused with the list") {
  for (const Role role :
       {Role::replay, Role::parameter_server, Role::learner, Role::environment, Role::evaluator})
    CHECK(role_named(role_name(role)) == role);
  CHECK_THROWS_WITH_AS(
      role_named("leaner"),
      doctest::Contains("replay, parameter_server, learner, environment or evaluator"),
      std::invalid_argument);
}

} // namespace
} // namespace troupe::actors

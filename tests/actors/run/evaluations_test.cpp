// Evaluations that run while training continues, and their ends.
#include "actors/run/evaluations.hpp"

#include <vector>

#include "tests/actors/run/head_fixture.hpp"
#include "tests/text.hpp"

namespace troupe::actors {
namespace {

caf::behavior plays(caf::event_based_actor*) {
  return {[](evaluate_atom, const ProtoBytes&) {
    wire::EvaluationResult result;
    result.add_returns(3);
    result.set_version(40);
    return encode(result);
  }};
}

caf::behavior refuses(caf::event_based_actor*) {
  return {[](evaluate_atom, const ProtoBytes&) -> caf::result<ProtoBytes> {
    return caf::make_error(Fault::bad_request, std::string("the stage is closed"));
  }};
}

caf::behavior
plays_for_ever(caf::stateful_actor<std::vector<caf::typed_response_promise<ProtoBytes>>>* self) {
  return {[self](evaluate_atom, const ProtoBytes&) -> caf::result<ProtoBytes> {
    auto promise = self->make_response_promise<ProtoBytes>();
    self->state.push_back(promise);
    return promise;
  }};
}

struct EvaluationsFixture : HeadFixture {
  Progress progress;
  std::vector<std::int64_t> ended; // steps at which the ended evaluations began
  Evaluations evaluations{
      context, actors, [this](const Progress& begun) { ended.push_back(begun.environment_steps); }};

  EvaluationsFixture() {
    progress.environment_steps = 500;
    progress.updates = 30;
  }

  void begin_with(const caf::actor& evaluator) {
    fakes.push_back(evaluator);
    announce({Role::evaluator, 0}, evaluator);
    CHECK(evaluations.begin(progress));
    progress.environment_steps = 900;
  }
};

TEST_CASE_FIXTURE(EvaluationsFixture, "An evaluation ends with its result and the progress at "
                                      "which it began") {
  begin_with(system.spawn(plays));
  handle_until([this] { return !evaluations.running(); });
  const auto result = evaluations.next();
  REQUIRE(result.has_value());
  CHECK(result->returns == std::vector<double>{3});
  CHECK(result->environment_steps == 500);
  CHECK(result->updates == 40);
  CHECK(ended == std::vector<std::int64_t>{500});
}

TEST_CASE_FIXTURE(EvaluationsFixture, "An evaluation that is refused ends, and the reason is "
                                      "logged") {
  begin_with(system.spawn(refuses));
  handle_until([this] { return !evaluations.running(); });
  CHECK_FALSE(evaluations.next().has_value());
  CHECK(ended == std::vector<std::int64_t>{500});
  REQUIRE(logged.size() == 1);
  CHECK(has(logged[0], "the evaluation after 30 updates has no result: the stage is closed"));
}

TEST_CASE_FIXTURE(EvaluationsFixture, "An evaluation has not ended if its evaluator is not up, is "
                                      "dead or leaves") {
  CHECK_FALSE(evaluations.begin(progress));
  SUBCASE("dead") {
    const caf::actor evaluator = system.spawn(plays_for_ever);
    caf::anon_send_exit(evaluator, caf::exit_reason::user_shutdown);
    begin_with(evaluator);
    handle_until([this] { return !evaluations.running(); });
  }
  SUBCASE("leaves") {
    begin_with(system.spawn(plays_for_ever));
    evaluations.cancel();
    CHECK_FALSE(evaluations.running());
    CHECK(logged.size() == 1);
  }
  CHECK_FALSE(evaluations.next().has_value());
  CHECK(ended.empty());
}

TEST_CASE_FIXTURE(EvaluationsFixture, "An evaluation during which two evaluators were lost has "
                                      "ended") {
  begin_with(system.spawn(plays_for_ever));
  evaluations.cancel();
  CHECK(ended.empty());
  CHECK(evaluations.begin(progress));
  evaluations.cancel();
  CHECK(ended == std::vector<std::int64_t>{900});
  REQUIRE(logged.size() == 2);
  CHECK(has(logged[1], "two evaluators were lost"));
  CHECK(evaluations.begin(progress)); // the next one may be repeated again
  evaluations.cancel();
  CHECK(ended.size() == 1);
}

} // namespace
} // namespace troupe::actors

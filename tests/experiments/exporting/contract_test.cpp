// The contract of an exported policy, and the contracts that are refused.
#include "tests/doctest_torch.hpp"

#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "experiments/exporting/contract.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;

namespace {

PolicyContract walker() {
  return contract_of({.task = "walker_walk", .frame_stack = 2, .action_repeat = 2});
}

std::string refusal(const PolicyContract& contract, const std::string& text) {
  const TemporaryFolder folder;
  std::ofstream(folder / "contract.json") << text;
  return error_of<std::invalid_argument>(
      [&] { check_contract(contract, folder / "contract.json"); });
}

} // namespace

TEST_CASE("A contract has the model's names in the environment's order, the history and the "
          "control period") {
  const PolicyContract made = walker();
  REQUIRE(made.actions.size() == 6);
  CHECK(made.actions[0].name == "right_hip");
  CHECK(made.actions[5].name == "left_ankle");
  CHECK(made.actions[0].minimum == -1);
  REQUIRE(made.observations.size() == 1);
  const auto& state = made.observations[0];
  REQUIRE(state.elements.size() == 24);
  CHECK(state.spec.shape == std::vector<std::int64_t>{24});
  CHECK(state.elements[0].name == "orientations[0]");
  CHECK(state.elements[14].name == "height");
  CHECK(state.elements[23].name == "velocity[8]");
  CHECK(made.history == 2);
  CHECK(made.control_period_seconds == doctest::Approx(0.05)); // 0.025 s, twice
  CHECK(made.joints[0].name == "rootz");
  CHECK(made.joints[0].unit == "m");
}

TEST_CASE("An action is scaled to the environment's bounds or to the clipped part of them") {
  const auto pendulum = contract_of({.task = "Pendulum-v1", .action_clip = 0.5});
  REQUIRE(pendulum.scales.size() == 1);
  CHECK(pendulum.actions[0].maximum == 2);
  CHECK(pendulum.scales[0](0.25) == doctest::Approx(0.5));
  CHECK(pendulum.scales[0](1) == doctest::Approx(1)); // clipped to half the range
  const auto rescaled =
      contract_of({.task = "Pendulum-v1", .action_clip = 0.5, .action_rescale = true});
  CHECK(rescaled.scales[0](1) == doctest::Approx(1));
  CHECK(rescaled.scales[0](0.25) == doctest::Approx(0.25));
  CHECK(contract_of({.task = "CartPole-v1"}).actions[0].choices == 2);
}

TEST_CASE("Selected elements of an observation keep their names") {
  const auto made =
      contract_of({.task = "walker_walk", .observations = {"velocity[2,0]", "height"}});
  REQUIRE(made.observations.size() == 2);
  CHECK(made.observations[0].elements[0].name == "velocity[2]");
  CHECK(made.observations[0].elements[1].name == "velocity[0]");
  CHECK(made.observations[1].elements[0].name == "height");
}

TEST_CASE("Running statistics, which checkpoints do not contain, are refused") {
  CHECK_THROWS_WITH_AS(contract_of({.task = "walker_walk", .normalization = {.mode = "running"}}),
                       doctest::Contains("environment.normalization.mode is \"running\""),
                       std::invalid_argument);
}

TEST_CASE("A different contract is refused, and the error names the difference") {
  const PolicyContract made = walker();
  const json whole = json::parse(contract_text(made));
  CHECK(refusal(made, whole.dump()).empty());
  json other = whole;
  other["actions"][2]["name"] = "gripper";
  CHECK(has(refusal(made, other.dump()),
            "actions[2].name: the policy has \"right_ankle\", the other "
            "\"gripper\""));
  other = whole;
  other["history"] = 3;
  CHECK(has(refusal(made, other.dump()), "history: the policy has 2, the other 3"));
  other = whole;
  other["observations"][0]["elements"].erase(3);
  CHECK(has(refusal(made, other.dump()), "observations[0].elements: the policy has 24 entries"));
  other = whole;
  other.erase("control_period_seconds");
  CHECK(has(refusal(made, other.dump()), "control_period_seconds"));
  other = whole;
  other["updates"] = 12; // another policy with the same contract
  other["agent"] = "sac";
  CHECK(refusal(made, other.dump()).empty());
  CHECK(has(refusal(made, "{}"), "is not a contract"));
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  other = whole;
  other.erase("observations");
  std::string nested = other.dump();
  nested.insert(1, "\"observations\": " + deep + ", ");
  CHECK(has(refusal(made, nested), "is nested more than 16 deep"));
  CHECK_THROWS_WITH_AS(check_contract(made, "none.json"), doctest::Contains("cannot be read"),
                       std::invalid_argument);
}

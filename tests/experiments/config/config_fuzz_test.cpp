#include <doctest/doctest.h>

#include <google/protobuf/util/message_differencer.h>

#include "env/random.hpp"
#include "experiments/config/config.hpp"
#include "tests/experiments/mutated.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments;

TEST_CASE("A mutated experiment is either parsed completely or refused with a ConfigError") {
  const std::string original = read_text(in_source("experiments/configs/quickstart.textproto"));
  REQUIRE(original.size() > 100);
  troupe::env::Random random(11);
  int refused = 0;
  int read = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = mutated(original, random);
    CAPTURE(text);
    try {
      const Experiment experiment = parse_experiment(text, "fuzz.textproto");
      const Experiment again = parse_experiment(resolved_text(experiment), "again.textproto");
      CHECK(google::protobuf::util::MessageDifferencer::Equals(experiment, again));
      ++read;
    } catch (const ConfigError& error) {
      REQUIRE_FALSE(error.complaints().empty());
      CHECK(std::string(error.what()).starts_with("fuzz.textproto:"));
      ++refused;
    }
  }
  CHECK(refused > 100); // some edits break the rules,
  CHECK(read > 100);    // and some (comments, blanks) are harmless
}

TEST_CASE("A mutated --set is either applied or refused with an error that names it") {
  troupe::env::Random random(12);
  const std::string file = "environment { task: \"cartpole_balance\" }";
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string assignment = mutated("d4pg.policy_layers=256,256", random);
    CAPTURE(assignment);
    try {
      parse_experiment(file, "file.textproto", {assignment});
    } catch (const ConfigError& error) {
      CHECK(std::string(error.what()).starts_with("--set "));
      ++refused;
    }
  }
  CHECK(refused > 100);
}

#include <doctest/doctest.h>

#include <google/protobuf/util/message_differencer.h>

#include "env/random.hpp"
#include "experiments/config.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments;

namespace {

/// One to four random edits: flipped bytes, cuts, copies of a piece, tokens of the language.
std::string mutated(std::string text, troupe::env::Random& random) {
  static const std::vector<std::string> kTokens = {"{",
                                                   "}",
                                                   ":",
                                                   "[",
                                                   "]",
                                                   "<",
                                                   ">",
                                                   "\"",
                                                   "-",
                                                   "#",
                                                   "0",
                                                   "1e999",
                                                   "nan",
                                                   "inf",
                                                   "true",
                                                   "seed: 1",
                                                   "replay {",
                                                   "\n",
                                                   "'",
                                                   "/",
                                                   std::string(1, '\0'),
                                                   "\xff",
                                                   "[a.b/c.d]",
                                                   ";",
                                                   ",",
                                                   "0x7fffffffffffffff"};
  const auto below = [&](std::size_t limit) {
    return limit == 0 ? 0 : static_cast<std::size_t>(random.bits() % limit);
  };
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t count = below(std::min<std::size_t>(text.size() - at, 30) + 1);
    switch (below(4)) {
    case 0:
      if (at < text.size()) {
        text[at] = static_cast<char>(random.bits());
      }
      break;
    case 1:
      text.erase(at, count);
      break;
    case 2:
      text.insert(below(text.size() + 1), text.substr(at, count));
      break;
    default:
      text.insert(at, kTokens[below(kTokens.size())]);
    }
  }
  return text;
}

} // namespace

TEST_CASE(
    "A mutated experiment is read completely or refused in one line, and nothing else happens") {
  const std::string original = read_text(std::filesystem::path(TROUPE_SOURCE_DIR)
                                         / "experiments/configs/quickstart.textproto");
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
  CHECK(refused > 100); // the edits do reach the rules,
  CHECK(read > 100);    // and some (comments, blanks) are harmless
}

TEST_CASE("A mutated --set is applied or refused, and nothing else happens") {
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

// The limits of the transparent mode that its README lists behave as described there.
#include "tests/learner/transparent/trainer_run.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::learner::transparent;

namespace {

RunOfRanks network(const std::string& trick, const TemporaryFolder& folder,
                   std::vector<std::string> flags = {}) {
  auto run = run_ranks(2, {style("network_style"), "8", "4", "6", trick}, folder, flags);
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code == 0);
  return run;
}

std::vector<std::string> parameters(const std::string& output) {
  return lines_of(output, "parameter ");
}

double difference(const std::string& a, const std::string& b) {
  return largest_difference(numbers_of(a, "parameter "), numbers_of(b, "parameter "));
}

} // namespace

TEST_CASE("Steps of a custom optimizer class are not seen, and a message says so") {
  const TemporaryFolder folder;
  const auto run = network("own_optimizer", folder);
  CHECK(has(run.outcome.output, "no step of a LibTorch optimizer was seen"));
  CHECK(parameters(run.ranks[0]) != parameters(run.ranks[1])); // each trained alone
}

TEST_CASE("With a custom sampler or a stream, every rank gets every sample") {
  const TemporaryFolder folder;
  for (const std::string trick : {"own_sampler", "stream"}) {
    CAPTURE(trick);
    const auto alone = run_alone({style("network_style"), "8", "4", "6", trick}, folder);
    const auto both = network(trick, folder);
    CHECK(lines_of(both.ranks[0], "loss ") == lines_of(both.ranks[1], "loss "));
    CHECK(difference(both.ranks[0], alone.output) < 1e-4); // correct, but without a speed-up
    CHECK(has(both.outcome.output, "a stream is read") == (trick == "stream"));
  }
}

TEST_CASE("Gradient norms are clipped on each rank before averaging") {
  const TemporaryFolder folder;
  const auto compare = [&](const std::string& trick) {
    const auto alone = run_alone({style("network_style"), "8", "8", "6", trick}, folder);
    const auto both = network(trick, folder);
    CHECK(parameters(both.ranks[0]) == parameters(both.ranks[1]));
    return difference(alone.output, both.ranks[0]);
  };
  CHECK(compare("clip") > 10 * compare("no_norm"));
}

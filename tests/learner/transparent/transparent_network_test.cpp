// A network with several buckets: sending during the backward pass, and batch norm's buffers.
#include "tests/learner/transparent/trainer_run.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace troupe;
using namespace troupe::learner::transparent;

namespace {

RunOfRanks network(int ranks, const std::string& trick, const TemporaryFolder& folder,
                   std::vector<std::string> flags = {}, const std::string& batch = "4") {
  auto run = run_ranks(ranks, {style("network_style"), "96", batch, "8", trick}, folder, flags);
  CAPTURE(run.outcome.output);
  CAPTURE(trick);
  CHECK(run.outcome.exit_code == 0);
  return run;
}

} // namespace

TEST_CASE(
    "Sending gradients during backward or at the step gives the same parameters bit for bit") {
  const TemporaryFolder folder;
  for (const std::string trick : {"plain", "accumulate", "clip", "data", "skip", "two", "more"}) {
    CAPTURE(trick);
    const auto early = network(2, trick, folder);
    const auto late = network(2, trick, folder, {"--overlap", "off"});
    const auto parameters = lines_of(early.ranks[0], "parameter ");
    CHECK(parameters.size() > 10);
    CHECK(parameters == lines_of(early.ranks[1], "parameter "));
    CHECK(parameters == lines_of(late.ranks[0], "parameter "));
  }
}

TEST_CASE("A large network on half a batch per rank equals one on the whole, with every backend") {
  const TemporaryFolder folder;
  const auto alone = run_alone({style("network_style"), "96", "8", "8", "no_norm"}, folder);
  const auto single = numbers_of(alone.output, "parameter ");
  for (const std::string backend : {"shared_memory", "tcp", "hierarchical"}) {
    CAPTURE(backend);
    const auto both = network(2, "no_norm", folder, {"--backend", backend});
    const auto twice = numbers_of(both.ranks[0], "parameter ");
    REQUIRE(single.size() == twice.size());
    for (std::size_t i = 0; i < single.size(); ++i)
      CHECK(std::abs(single[i] - twice[i]) < 1e-3 * (1 + std::abs(single[i])));
  }
}

TEST_CASE("Buffers are rank 0's after each step, so all ranks evaluate the same model") {
  const TemporaryFolder folder;
  for (const auto& backend : {"shared_memory", "hierarchical"}) {
    const auto shared = network(3, "plain", folder, {"--backend", backend});
    for (const std::string& rank : shared.ranks) {
      CHECK(lines_of(rank, "buffer ").size() == 18);
      CHECK(lines_of(rank, "buffer ") == lines_of(shared.ranks[0], "buffer "));
      CHECK(lines_of(rank, "evaluation ") == lines_of(shared.ranks[0], "evaluation "));
    }
  }
  const auto own = network(2, "plain", folder, {"--buffers", "own"});
  CHECK(lines_of(own.ranks[0], "parameter ") == lines_of(own.ranks[1], "parameter "));
  CHECK(lines_of(own.ranks[0], "buffer ") != lines_of(own.ranks[1], "buffer "));
  CHECK(lines_of(own.ranks[0], "evaluation ") != lines_of(own.ranks[1], "evaluation "));
}

TEST_CASE("Optimizers that a program constructs again and again leave no memory behind") {
  const TemporaryFolder folder;
  const auto run = run_ranks(2, {style("network_style"), "96", "4", "24", "new"}, folder);
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code == 0);
  CHECK(lines_of(run.ranks[0], "parameter ") == lines_of(run.ranks[1], "parameter "));
  constexpr double kModel = 1.7e6; // bytes; eleven optimizers are constructed between the lines
  for (const std::string& rank : run.ranks) {
    const auto bytes = numbers_of(rank, "bytes in use ");
    REQUIRE(bytes.size() == 2);
    CHECK(bytes[1] - bytes[0] < 3 * kModel);
  }
}

// A learner workload in a program that embeds a run.
#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

/// The number after the last "accuracy ".
double accuracy(const std::string& output) {
  return std::stod(output.substr(output.rfind("accuracy ") + 9));
}

} // namespace

TEST_CASE("Two replicas of a custom workload learn, and training resumes from their checkpoint") {
  const TemporaryFolder folder;
  Program training({in_build("experiments/own_workload"), "spirals"}, folder.path());
  const int trained = training.wait();
  CAPTURE(training.output());
  REQUIRE(trained == 0);
  CHECK(has(training.output(), "after 200 updates: accuracy 0."));
  CHECK(accuracy(training.output()) > 0.95);
  const fs::path checkpoint = folder.path() / "spirals/checkpoints/600";
  CHECK(has(training.output(), "checkpoint spirals/checkpoints/600"));
  CHECK(has(read_text(checkpoint / "learner.safetensors"), "second.weight"));
  CHECK(fs::exists(checkpoint / "optimizer-1.safetensors")); // the second replica's
  Program resumed({in_build("experiments/own_workload"), "spirals", checkpoint.string(), "800"},
                  folder.path());
  const int continued = resumed.wait();
  CAPTURE(resumed.output());
  REQUIRE(continued == 0);
  CHECK(has(resumed.output(), "checkpoint spirals/checkpoints/800"));
  CHECK_FALSE(has(resumed.output(), "after 200 updates"));
  CHECK(accuracy(resumed.output()) > 0.95);
}

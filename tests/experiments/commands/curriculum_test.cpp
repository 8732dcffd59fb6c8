// An actor that joins a run in a program that embeds it.
#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;

namespace {

const std::string kProgram = in_build("experiments/curriculum");
const std::string kExperiment = in_source("experiments/examples/curriculum/curriculum.textproto");

} // namespace

TEST_CASE("A curriculum that joins the run teaches a code that random actions never open") {
  const TemporaryFolder folder;
  Program training({kProgram, kExperiment}, folder.path());
  const int exit_code = training.wait();
  CAPTURE(training.output());
  REQUIRE(exit_code == 0);
  CHECK(has(training.output(), "the task's options are now \"digits=2\""));
  CHECK(has(training.output(), "the task's options are now \"digits=12\""));
  CHECK(has(training.output(), "mean return of the whole code: 1"));
}

TEST_CASE("Without the curriculum, the agent does not learn the code") {
  const TemporaryFolder folder;
  Program training({kProgram, kExperiment, "--without", "stop.environment_steps=5000"},
                   folder.path());
  const int exit_code = training.wait();
  CAPTURE(training.output());
  REQUIRE(exit_code == 0);
  CHECK_FALSE(has(training.output(), "the task's options are now"));
  CHECK(has(training.output(), "mean return of the whole code: 0"));
}

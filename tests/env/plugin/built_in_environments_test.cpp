#include <doctest/doctest.h>

#include "env/make/make.hpp"
#include "env/plugin/check_environment.hpp"

using namespace troupe::env;

namespace {

/// Checks every `parts`-th task, starting with number `part`.
void check_part(std::size_t part, std::size_t parts) {
  const auto tasks = environment_names();
  for (std::size_t i = part; i < tasks.size(); i += parts) {
    const std::string& task = tasks[i];
    CAPTURE(task);
    const auto first = make_bare({.task = task}); // keeps the compiled model for the others
    for (const bool wrapped : {false, true})
      for (const CheckFinding& finding : check_environment(
               [&] {
                 return wrapped ? make_environment({.task = task}) : make_bare({.task = task});
               },
               {.steps = 6, .episode_steps = 1000})) {
        CAPTURE(finding.text);
        CHECK_FALSE(finding.error);
      }
  }
}

} // namespace

TEST_CASE("every built-in environment obeys the contract, bare and wrapped: part 1 of 2") {
  check_part(0, 2);
}

TEST_CASE("every built-in environment obeys the contract, bare and wrapped: part 2 of 2") {
  check_part(1, 2);
}

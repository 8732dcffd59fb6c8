#include <doctest/doctest.h>

#include "env/make.hpp"
#include "env/plugin/check_environment.hpp"

using namespace troupe::env;

TEST_CASE("every built-in environment keeps to the rules of one, bare and wrapped") {
  for (const std::string& task : environment_names()) {
    CAPTURE(task);
    const CheckOptions options{.steps = 6, .episode_steps = 1000};
    for (const bool wrapped : {false, true}) {
      const auto findings = check_environment(
          [&] { return wrapped ? make_environment({.task = task}) : make_bare({.task = task}); },
          options);
      for (const CheckFinding& finding : findings) {
        CAPTURE(finding.text);
        CHECK_FALSE(finding.error);
      }
    }
  }
}

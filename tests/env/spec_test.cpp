#include "env/spec.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace troupe::env;

TEST_CASE("one_of(n) is a single choice with the bounds 0 and n - 1") {
  const ActionSpec action = one_of(6);
  CHECK(action == ActionSpec{.minimum = {0}, .maximum = {5}, .choices = {6}});
  CHECK(action.choices_of(0) == 6);
  CHECK(!action.is_continuous());
  CHECK(problem_of(action).empty());
  CHECK(problem_of(one_of(2)).empty());
  CHECK(problem_of(one_of(1))
        == "action[0] has 1 choices; it must have 2 or more, or be continuous (0)");
}

TEST_CASE("An action is continuous if none of its numbers is a choice, whether or not choices are "
          "written") {
  const ActionSpec unwritten{.minimum = {-1, -1}, .maximum = {1, 1}};
  CHECK(unwritten.is_continuous());
  CHECK(unwritten.choices_of(1) == 0);
  const ActionSpec written{.minimum = {-1, -1}, .maximum = {1, 1}, .choices = {0, 0}};
  CHECK(written.is_continuous());
  CHECK(problem_of(written).empty());
  const ActionSpec mixed{.minimum = {-1, 0}, .maximum = {1, 3}, .choices = {0, 4}};
  CHECK(!mixed.is_continuous());
  CHECK(mixed.choices_of(0) == 0);
  CHECK(mixed.choices_of(1) == 4);
  CHECK(problem_of(mixed).empty());
}

TEST_CASE("Each problem of an action spec is described in one sentence") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  CHECK(problem_of({.minimum = {-kInfinity}, .maximum = {kInfinity}}).empty());
  // clang-format off
  const std::pair<ActionSpec, const char*> cases[] = {
      {{.minimum = {0, 0}, .maximum = {1}},
       "2 action minima and 1 maxima; their numbers must be equal"},
      {{.minimum = {0, 0}, .maximum = {1, 1}, .choices = {2}},
       "1 numbers of choices for 2 action dimensions; there must be one for each, or none"},
      {{.minimum = {0}, .maximum = {1}, .choices = {2, 2}},
       "2 numbers of choices for 1 action dimensions; there must be one for each, or none"},
      {{.minimum = {0, 0}, .maximum = {1, 0}, .choices = {0, 1}},
       "action[1] has 1 choices; it must have 2 or more, or be continuous (0)"},
      {{.minimum = {0}, .maximum = {1}, .choices = {-2}},
       "action[0] has -2 choices; it must have 2 or more, or be continuous (0)"},
      {{.minimum = {0}, .maximum = {3}, .choices = {3}},
       "action[0] has 3 choices and the bounds 0.000000 and 3.000000; they must be 0 and 2"},
      {{.minimum = {1}, .maximum = {3}, .choices = {3}},
       "action[0] has 3 choices and the bounds 1.000000 and 3.000000; they must be 0 and 2"},
      {{.minimum = {kNan}, .maximum = {2}, .choices = {3}},
       "action[0] has 3 choices and the bounds nan and 2.000000; they must be 0 and 2"},
      {{.minimum = {0, 1}, .maximum = {1, 1}},
       "action[1] is bounded by 1.000000 and 1.000000; the minimum must be below the maximum"},
      {{.minimum = {0}, .maximum = {kNan}},
       "action[0] is bounded by 0.000000 and nan; the minimum must be below the maximum"},
  };
  // clang-format on
  for (const auto& [action, problem] : cases)
    CHECK(problem_of(action) == problem);
}

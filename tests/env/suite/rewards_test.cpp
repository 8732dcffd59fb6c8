#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "env/suite/rewards.hpp"

using namespace troupe::env;

namespace {
constexpr Sigmoid kAll[] = {Sigmoid::gaussian,   Sigmoid::hyperbolic,  Sigmoid::long_tail,
                            Sigmoid::reciprocal, Sigmoid::cosine,      Sigmoid::linear,
                            Sigmoid::quadratic,  Sigmoid::tanh_squared};
}

TEST_CASE("Every tolerance is 1 inside its bounds and value_at_margin at the margin") {
  for (const Sigmoid sigmoid : kAll) {
    const Tolerance t{
        .lower = -1, .upper = 2, .margin = .5, .sigmoid = sigmoid, .value_at_margin = .3};
    for (const double x : {-1.0, 0.0, 2.0})
      CHECK(tolerance(x, t) == 1);
    CHECK(tolerance(-1.5, t) == doctest::Approx(.3));
    CHECK(tolerance(2.5, t) == doctest::Approx(.3));
  }
}

TEST_CASE("Every tolerance is symmetric, falls with the distance and stays between 0 and 1") {
  for (const Sigmoid sigmoid : kAll) {
    const Tolerance t{.margin = 1, .sigmoid = sigmoid, .value_at_margin = .1};
    double before = 1;
    for (double x = 0; x < 5; x += .01) {
      const double value = tolerance(x, t);
      CHECK(value == tolerance(-x, t));
      REQUIRE(value <= before);
      REQUIRE(value >= 0);
      before = value;
    }
    CHECK(before < .1);
  }
}

TEST_CASE("A tolerance without a margin is an indicator function") {
  const Tolerance t{.lower = 0, .upper = 1};
  CHECK(tolerance(0, t) == 1);
  CHECK(tolerance(1, t) == 1);
  CHECK(tolerance(std::nextafter(1.0, 2.0), t) == 0);
  CHECK(tolerance(-1e-300, t) == 0);
}

TEST_CASE("The mean tolerance of several values is the mean of their tolerances") {
  const Tolerance t{.margin = 1, .sigmoid = Sigmoid::quadratic, .value_at_margin = 0};
  const double values[] = {0, .5, -1, 7};
  CHECK(mean_tolerance(values, t) == doctest::Approx((1 + .75 + 0 + 0) / 4));
  CHECK(mean_tolerance({values, 1}, t) == 1);
  CHECK_THROWS_AS(mean_tolerance({}, t), std::invalid_argument);
}

TEST_CASE("A tolerance with invalid parameters is refused") {
  CHECK_THROWS_AS(tolerance(0, {.lower = 1, .upper = 0}), std::invalid_argument);
  CHECK_THROWS_AS(tolerance(0, {.margin = -1}), std::invalid_argument);
  CHECK_THROWS_AS(tolerance(1, {.margin = 1, .value_at_margin = 1}), std::invalid_argument);
  CHECK_THROWS_AS(tolerance(1, {.margin = 1, .value_at_margin = 0}), std::invalid_argument);
  CHECK_NOTHROW(tolerance(1, {.margin = 1, .sigmoid = Sigmoid::linear, .value_at_margin = 0}));
}

#include "tests/doctest_torch.hpp"

#include <cmath>

#include "learner/gradients/bucket_tuner.hpp"
#include "learner/gradients/schedule.hpp"

namespace troupe::learner {

TEST_CASE("A warm-up is linear from its start to the rate times the number of replicas") {
  const LearningRateSchedule schedule{
      .scale_by_replicas = true, .warmup_steps = 4, .warmup_from = 1};
  for (const int replicas : {1, 8}) {
    CHECK(schedule.multiple(0, replicas) == 1);
    CHECK(schedule.multiple(2, replicas) == doctest::Approx((1 + replicas) / 2.0));
    CHECK(schedule.multiple(4, replicas) == replicas);
    CHECK(schedule.multiple(1'000'000, replicas) == replicas);
  }
}

TEST_CASE("Cosine and polynomial schedules reach their final fraction and stay there") {
  for (const auto shape : {ScheduleShape::cosine, ScheduleShape::polynomial}) {
    const LearningRateSchedule schedule{
        .shape = shape, .warmup_steps = 10, .total_steps = 110, .final_fraction = 0.1, .power = 1};
    CHECK(schedule.multiple(0, 1) == 0);
    CHECK(schedule.multiple(10, 1) == doctest::Approx(1));
    CHECK(schedule.multiple(60, 1) == doctest::Approx(0.55)); // half way
    CHECK(schedule.multiple(110, 1) == doctest::Approx(0.1));
    CHECK(schedule.multiple(500, 1) == doctest::Approx(0.1));
    for (int step = 11; step <= 110; ++step)
      CHECK(schedule.multiple(step, 1) < schedule.multiple(step - 1, 1));
  }
  const LearningRateSchedule squared{
      .shape = ScheduleShape::polynomial, .total_steps = 10, .power = 2};
  CHECK(squared.multiple(5, 1) == doctest::Approx(0.25));
}

TEST_CASE("A step schedule multiplies the rate at each milestone") {
  const LearningRateSchedule schedule{
      .shape = ScheduleShape::steps, .milestones = {30, 60}, .decay = 0.1};
  CHECK(schedule.multiple(29, 1) == 1);
  CHECK(schedule.multiple(30, 1) == doctest::Approx(0.1));
  CHECK(schedule.multiple(60, 4) == doctest::Approx(0.01));
}

TEST_CASE("An exponential schedule decreases in steps of equal length after the warm-up") {
  const LearningRateSchedule schedule{
      .shape = ScheduleShape::exponential, .warmup_steps = 5, .decay = 0.94, .decay_steps = 10};
  for (const int step : {5, 14})
    CHECK(schedule.multiple(step, 1) == 1);
  CHECK(schedule.multiple(15, 1) == doctest::Approx(0.94));
  CHECK(schedule.multiple(44, 1) == doctest::Approx(0.94 * 0.94 * 0.94));
}

TEST_CASE("Invalid schedules are refused") {
  CHECK_THROWS_AS(check_schedule({.shape = ScheduleShape::exponential}), std::invalid_argument);
  CHECK_THROWS_AS(check_schedule({.warmup_steps = -1}), std::invalid_argument);
  CHECK_THROWS_AS(check_schedule({.shape = ScheduleShape::cosine}), std::invalid_argument);
  CHECK_THROWS_AS(check_schedule({.shape = ScheduleShape::steps}), std::invalid_argument);
  CHECK_THROWS_AS(check_schedule({.warmup_from = NAN}), std::invalid_argument);
  CHECK_THROWS_AS(LearningRateSchedule{}.multiple(-1, 1), std::invalid_argument);
}

TEST_CASE("The tuner selects the size with the smallest median, despite outliers") {
  BucketTuner tuner({1, 2, 3}, 3);
  const double seconds[3][4] = {{0, 5, 5, 5}, {99, 3, 50, 3}, {0, 4, 1, 4}};
  for (const auto& row : seconds) {
    CHECK_FALSE(tuner.done());
    for (int i = 0; i < 4; ++i)
      CHECK(tuner.add(row[i]) == (i == 3));
  }
  REQUIRE(tuner.done());
  CHECK(tuner.fastest() == 1);
  tuner.settle(tuner.fastest());
  CHECK(tuner.current() == 2);
  CHECK_FALSE(tuner.add(1));
  CHECK_THROWS_AS(BucketTuner({}, 1), std::invalid_argument);
}

} // namespace troupe::learner

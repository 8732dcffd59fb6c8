#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "env/make/make.hpp"
#include "env/npz.hpp"
#include "env/physics.hpp"
#include "env/random.hpp"
#include "env/suite/terrain.hpp"
#include "tests/env/golden/recordings.hpp"

using namespace troupe::env;

namespace {

std::vector<double> random_grid(int size, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> grid(static_cast<std::size_t>(size * size));
  for (double& value : grid)
    value = random.uniform(-1, 1);
  return grid;
}

double& at(std::vector<double>& grid, int size, int row, int column) {
  return grid[static_cast<std::size_t>(row * size + column)];
}

} // namespace

TEST_CASE("An enlarged grid passes through the original values") {
  for (const int size : {2, 3, 7, 30}) {
    constexpr int kTimes = 5;
    const int new_size = (size - 1) * kTimes + 1;
    std::vector<double> grid = random_grid(size, 3);
    std::vector<double> enlarged = enlarge_grid(grid, size, new_size);
    for (int row = 0; row < size; ++row)
      for (int column = 0; column < size; ++column)
        CHECK(at(enlarged, new_size, kTimes * row, kTimes * column)
              == doctest::Approx(at(grid, size, row, column)).epsilon(1e-12));
  }
}

TEST_CASE("An enlarged grid is linear in the original values, smooth, and level at its border") {
  constexpr int kSize = 9;
  constexpr int kNew = 801;
  const std::vector<double> a = random_grid(kSize, 5);
  const std::vector<double> b = random_grid(kSize, 6);
  std::vector<double> sum(a.size());
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] = 2 * a[i] - 3 * b[i];
  const auto big_a = enlarge_grid(a, kSize, kNew);
  const auto big_b = enlarge_grid(b, kSize, kNew);
  auto big_sum = enlarge_grid(sum, kSize, kNew);
  double worst = 0;
  for (std::size_t i = 0; i < big_sum.size(); ++i)
    worst = std::max(worst, std::abs(big_sum[i] - 2 * big_a[i] + 3 * big_b[i]));
  CHECK(worst < 1e-12);
  double steepest = 0; // the second derivative of a cubic spline is continuous
  const auto second = [&](int row, int column) {
    return at(big_sum, kNew, row, column - 1) - 2 * at(big_sum, kNew, row, column)
           + at(big_sum, kNew, row, column + 1);
  };
  double largest = 0;
  for (int column = 2; column + 2 < kNew; ++column) {
    steepest = std::max(steepest, std::abs(second(77, column + 1) - second(77, column)));
    largest = std::max(largest, std::abs(second(77, column)));
  }
  CHECK(steepest < largest / 20);
  for (int row = 0; row < kNew; row += 50) // mirrored at the edge
    CHECK(std::abs(at(big_sum, kNew, row, 1) - at(big_sum, kNew, row, 0)) < largest);
  const std::vector<double> flat = enlarge_grid(std::vector<double>(16, .7), 4, 11);
  for (const double value : flat)
    CHECK(value == doctest::Approx(.7).epsilon(1e-14));
}

TEST_CASE("With the same bumps, the terrain equals dm_control's") {
  const std::string file = kRecordings + "/quadruped_escape.npz";
  const std::vector<double> recorded = read_npz(file).at("model/hfield_data").as_doubles();
  std::mt19937 twister(42); // the seed of the recordings: numpy.random.RandomState(42)
  std::vector<double> bumps(30 * 30);
  for (double& bump : bumps) {
    const double high = twister() >> 5;
    const double low = twister() >> 6;
    bump = .15 + .85 * (high * 67108864 + low) / 9007199254740992;
  }
  std::vector<float> heights(recorded.size());
  fill_bowl(bumps, 30, heights, 201);
  double worst = 0;
  for (std::size_t i = 0; i < heights.size(); ++i)
    worst = std::max(worst, std::abs(heights[i] - recorded[i]));
  CHECK(worst < 1e-7); // of heights up to 1, in float32
}

TEST_CASE("The quick count of contacts equals that of the full forward pass") {
  for (const char* task :
       {"humanoid_stand", "humanoid_CMU_run", "manipulator_insert_peg", "stacker_stack_4",
        "quadruped_walk", "quadruped_escape", "quadruped_fetch"}) {
    CAPTURE(task);
    const auto environment = make_task(task);
    std::vector<std::byte> observation(environment->spec().observation_bytes());
    Physics& physics = *environment->physics();
    Random random(9);
    int touching = 0;
    for (std::uint64_t i = 0; i < 100; ++i) {
      environment->reset(i, observation);
      for (int k = 0; k < static_cast<int>(physics.model().nq); ++k)
        physics.data().qpos[k] += random.uniform(-.3, .3);
      mj_normalizeQuat(&physics.model(), physics.data().qpos);
      const int quick = physics.contacts();
      physics.forward();
      CHECK(quick == physics.data().ncon);
      touching += quick > 0 ? 1 : 0;
    }
    CHECK(touching > 10);
    CHECK(touching < 100);
  }
}

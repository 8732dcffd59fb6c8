#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "env/gym/gym.hpp"
#include "env/physics.hpp"

using namespace troupe::env;

namespace {

constexpr int kResets = 4000;
constexpr double kSigmas = 5; // standard errors; 300 comparisons fail by chance once in 6000 runs

/// Moments of one number over many resets.
struct Moments {
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  double low = 1e300;
  double high = -1e300;

  void add(double value) {
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double mean() const { return sum / kResets; }
};

enum class Kind { uniform, normal };

/// Checks that the mean is zero, and compares variance, fourth moment and bounds with the
/// distribution.
void check_noise(const Moments& noise, Kind kind, double scale) {
  const double variance = kind == Kind::uniform ? scale * scale / 3 : scale * scale;
  const double fourth = (kind == Kind::uniform ? 9. / 5 : 3) * variance * variance;
  CHECK(std::abs(noise.mean()) < kSigmas * std::sqrt(variance / kResets));
  CHECK(std::abs(noise.squares / kResets - variance)
        < kSigmas * std::sqrt((fourth - variance * variance) / kResets));
  CHECK(std::abs(noise.fourth / kResets - fourth) < .25 * fourth);
  if (kind == Kind::uniform) {
    CHECK(noise.low >= -scale);
    CHECK(noise.high < scale);
    CHECK(noise.low < -.98 * scale);
    CHECK(noise.high > .98 * scale);
  } else {
    CHECK(noise.high > 2.5 * scale);
    CHECK(noise.low < -2.5 * scale);
  }
}

struct Starts {
  std::vector<Moments> qpos; // minus the model's defaults
  std::vector<Moments> qvel;
};

Starts sample(const std::string& name, const GymOptions& options = {},
              const std::function<void(const mjData&)>& look = nullptr) {
  const auto environment = make_gym(name, options);
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  const Physics& physics = *environment->physics();
  Starts starts{std::vector<Moments>(static_cast<std::size_t>(physics.model().nq)),
                std::vector<Moments>(static_cast<std::size_t>(physics.model().nv))};
  for (int i = 0; i < kResets; ++i) {
    environment->reset(static_cast<std::uint64_t>(i), observation);
    for (std::size_t k = 0; k < starts.qpos.size(); ++k)
      starts.qpos[k].add(physics.data().qpos[k] - physics.model().qpos0[k]);
    for (std::size_t k = 0; k < starts.qvel.size(); ++k)
      starts.qvel[k].add(physics.data().qvel[k]);
    if (look)
      look(physics.data());
  }
  return starts;
}

} // namespace

TEST_CASE("Positions start with uniform noise, and velocities with uniform or normal noise") {
  struct Row {
    const char* name;
    Kind velocities;
    double scale;
  };
  const Row rows[] = {{"Ant-v5", Kind::normal, .1},
                      {"HalfCheetah-v5", Kind::normal, .1},
                      {"Hopper-v5", Kind::uniform, .005},
                      {"Humanoid-v5", Kind::uniform, .01},
                      {"HumanoidStandup-v5", Kind::uniform, .01},
                      {"InvertedDoublePendulum-v5", Kind::normal, .1},
                      {"InvertedPendulum-v5", Kind::uniform, .01},
                      {"Swimmer-v5", Kind::uniform, .1},
                      {"Walker2d-v5", Kind::uniform, .005}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    for (const double factor : {1., 2.}) {
      const Starts starts =
          sample(row.name, {.values = {{"reset_noise_scale", std::to_string(factor * row.scale)}}});
      for (const Moments& noise : starts.qpos)
        check_noise(noise, Kind::uniform, factor * row.scale);
      for (const Moments& noise : starts.qvel)
        check_noise(noise, row.velocities, factor * row.scale);
    }
  }
}

TEST_CASE("Without noise, every episode starts in the same state") {
  const Starts starts = sample("Ant-v5", {.values = {{"reset_noise_scale", "0"}}});
  for (const Moments& noise : starts.qpos)
    CHECK(noise.squares == 0);
  for (const Moments& noise : starts.qvel)
    CHECK(noise.squares == 0);
}

TEST_CASE("The reacher's targets fill the disc within its reach") {
  int inner = 0;
  Moments target[2];
  const Starts starts = sample("Reacher-v5", {}, [&](const mjData& data) {
    const double radius = std::hypot(data.qpos[2], data.qpos[3]);
    REQUIRE(radius < .2);
    inner += radius < .1 ? 1 : 0;
    target[0].add(data.qpos[2]);
    target[1].add(data.qpos[3]);
  });
  CHECK(std::abs(inner - kResets / 4.) < kSigmas * std::sqrt(kResets * .25 * .75)); // by area
  for (const std::size_t joint : {0, 1}) {
    check_noise(starts.qpos[joint], Kind::uniform, .1);
    check_noise(starts.qvel[joint], Kind::uniform, .005);
    CHECK(starts.qvel[joint + 2].squares == 0);
    CHECK(std::abs(target[joint].mean()) < kSigmas * .1 / std::sqrt(kResets));
  }
}

TEST_CASE("The pusher's object starts behind the goal at a minimum distance") {
  int left = 0;
  Moments across;
  const Starts starts = sample("Pusher-v5", {}, [&](const mjData& data) {
    const double x = data.qpos[7];
    const double y = data.qpos[8];
    REQUIRE(std::hypot(x, y) > .17);
    REQUIRE((x >= -.3 && x < 0 && y >= -.2 && y < .2));
    REQUIRE((data.qpos[9] == 0 && data.qpos[10] == 0));
    left += x < -.17 ? 1 : 0;
    across.add(y);
  });
  // Proportional to the area: all of [-0.3, -0.17) is allowed; of the rest, only what is outside a
  // half disc.
  const double far = .13 * .4;
  const double near = .17 * .4 - .5 * 3.14159265358979 * .17 * .17;
  const double share = far / (far + near);
  CHECK(std::abs(left - kResets * share) < kSigmas * std::sqrt(kResets * share * (1 - share)));
  CHECK(std::abs(across.mean()) < kSigmas * .13 / std::sqrt(kResets));
  for (std::size_t joint = 0; joint < 7; ++joint) {
    CHECK(starts.qpos[joint].squares == 0);
    check_noise(starts.qvel[joint], Kind::uniform, .005);
  }
  for (std::size_t joint = 7; joint < 11; ++joint)
    CHECK(starts.qvel[joint].squares == 0);
}

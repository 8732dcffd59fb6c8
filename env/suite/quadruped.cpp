#include <cmath>
#include <numbers>
#include <stdexcept>

#include "env/suite/model_editing.hpp"
#include "env/suite/placement.hpp"
#include "env/suite/remove_parts.hpp"
#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"
#include "env/suite/terrain.hpp"

namespace troupe::env {

namespace {

using std::numbers::pi;

constexpr const char* kQuadrupedFile = "quadruped.xml";
constexpr double kQuadrupedTimeLimit = 20; // seconds
constexpr double kQuadrupedWalkSpeed = .5; // metres/second
constexpr double kQuadrupedRunSpeed = 5;
constexpr double kEscapeFloor = 40; // from the middle to an edge, metres

struct Scenery {
  double floor = 0; // from the middle to an edge, metres; 0: the file's size
  bool terrain = false;
  bool ball = false; // also the walls and the ball's target
};

ModelEdit keep_scenery(Scenery scenery) {
  return [scenery](mjSpec& spec) {
    if (scenery.floor > 0) {
      mjsGeom* floor = mjs_asGeom(required_element(spec, mjOBJ_GEOM, "floor", kQuadrupedFile));
      floor->size[0] = floor->size[1] = scenery.floor;
    }
    if (!scenery.ball) {
      for (const char* wall : {"wall_px", "wall_py", "wall_nx", "wall_ny"})
        remove_part(spec, mjOBJ_GEOM, wall, kQuadrupedFile);
      remove_part(spec, mjOBJ_BODY, "ball", kQuadrupedFile);
      remove_part(spec, mjOBJ_SITE, "target", kQuadrupedFile);
    }
    if (!scenery.terrain) {
      remove_part(spec, mjOBJ_GEOM, "terrain", kQuadrupedFile);
      remove_sensors(spec, mjSENS_RANGEFINDER, kQuadrupedFile);
    }
  };
}

Quaternion random_turn(Random& random) {
  Quaternion turn;
  random_direction(turn, random);
  return turn;
}

/// The common part of all four tasks.
class Quadruped : public Task {
public:
  explicit Quadruped(Physics& physics)
      : torso_(physics.id(mjOBJ_BODY, "torso")),
        root_(physics.model().jnt_qposadr[physics.id(mjOBJ_JOINT, "root")]),
        velocimeter_(physics.id(mjOBJ_SENSOR, "velocimeter")),
        workspace_(physics.id(mjOBJ_SITE, "workspace")) {
    const mjModel& model = physics.model();
    for (int i = 0; i < static_cast<int>(model.njnt); ++i)
      if (model.jnt_type[i] == mjJNT_HINGE)
        hinges_.push_back({model.jnt_qposadr[i], model.jnt_dofadr[i]});
    for (int i = 0; i < static_cast<int>(model.nsensor); ++i) {
      const int type = model.sensor_type[i];
      if (type == mjSENS_GYRO || type == mjSENS_ACCELEROMETER)
        imu_.push_back(i);
      else if (type == mjSENS_FORCE || type == mjSENS_TORQUE)
        toes_.push_back(i);
    }
  }

  std::vector<ArraySpec> observations(const Physics&) const override {
    const auto hinges = static_cast<std::int64_t>(hinges_.size());
    return {float64_array("egocentric_state", {2 * hinges + kActivations}),
            float64_array("torso_velocity", {3}), float64_array("torso_upright", {}),
            float64_array("imu", {3 * static_cast<std::int64_t>(imu_.size())}),
            float64_array("force_torque", {3 * static_cast<std::int64_t>(toes_.size())})};
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    observe_common(physics, writer);
  }

protected:
  void observe_common(const Physics& physics, ObservationWriter& writer) const {
    const mjData& data = physics.data();
    for (const Hinge& hinge : hinges_)
      writer.put(data.qpos[hinge.position]);
    for (const Hinge& hinge : hinges_)
      writer.put(data.qvel[hinge.velocity]);
    writer.put(data.act, kActivations);
    writer.put(physics.sensor(velocimeter_).data(), 3);
    writer.put(body_axis(physics, torso_, kZz));
    for (const int sensor : imu_)
      writer.put(physics.sensor(sensor).data(), 3);
    for (const int sensor : toes_)
      for (const double value : physics.sensor(sensor))
        writer.put(std::asinh(value));
  }

  /// 1 if the torso leans by at most `lean_degrees`, 0 if it is upside down.
  double upright(const Physics& physics, double lean_degrees = 0) const {
    const double level = std::cos(lean_degrees * pi / 180);
    return tolerance(body_axis(physics, torso_, kZz), {.lower = level,
                                                       .upper = kInfinity,
                                                       .margin = 1 + level,
                                                       .sigmoid = Sigmoid::linear,
                                                       .value_at_margin = 0});
  }

  void put_in_torso_frame(const Physics& physics, const double* vector,
                          ObservationWriter& writer) const {
    double turned[3];
    mju_mulMatTVec3(turned, physics.data().xmat + 9 * torso_, vector);
    writer.put(turned, 3);
  }

  const double* torso_place(const Physics& physics) const {
    return physics.data().xpos + 3 * torso_;
  }
  const double* workspace_place(const Physics& physics) const {
    return physics.data().site_xpos + 3 * workspace_;
  }
  double forward_speed(const Physics& physics) const { return physics.sensor(velocimeter_)[0]; }
  int root() const { return root_; } // index into qpos
  int workspace() const { return workspace_; }

private:
  struct Hinge {
    int position;
    int velocity;
  };
  static constexpr int kActivations = 12; // one per actuator

  int torso_;
  int root_;
  int velocimeter_;
  int workspace_;
  std::vector<Hinge> hinges_;
  std::vector<int> imu_;
  std::vector<int> toes_;
};

class Move final : public Quadruped {
public:
  Move(Physics& physics, double speed) : Quadruped(physics), speed_(speed) {}

  void initialize_episode(Physics& physics, Random& random) const override {
    place_above_ground(physics, root(), 0, 0, random_turn(random));
  }

  double reward(const Physics& physics) const override {
    return upright(physics)
           * tolerance(forward_speed(physics), {.lower = speed_,
                                                .upper = kInfinity,
                                                .margin = speed_,
                                                .sigmoid = Sigmoid::linear,
                                                .value_at_margin = .5});
  }

private:
  double speed_; // metres/second
};

class Escape final : public Quadruped {
public:
  explicit Escape(Physics& physics) : Quadruped(physics), size_(physics.model().hfield_size[0]) {
    const mjModel& model = physics.model();
    if (model.nhfield != 1 || model.hfield_nrow[0] != model.hfield_ncol[0])
      throw std::runtime_error("model '" + physics.name()
                               + "' must have one square height field: it is not the suite's");
    for (int i = 0; i < static_cast<int>(model.nsensor); ++i)
      if (model.sensor_type[i] == mjSENS_RANGEFINDER)
        ranges_.push_back(i);
  }

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    std::vector<ArraySpec> all = Quadruped::observations(physics);
    all.push_back(float64_array("origin", {3}));
    all.push_back(float64_array("rangefinder", {static_cast<std::int64_t>(ranges_.size())}));
    return all;
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    draw_bowl(random, physics.own_float_array("hfield_data"), physics.model().hfield_nrow[0],
              size_);
    place_above_ground(physics, root(), 0, 0, random_turn(random));
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    observe_common(physics, writer);
    double to_origin[3];
    mju_scl3(to_origin, torso_place(physics), -1);
    put_in_torso_frame(physics, to_origin, writer);
    for (const int sensor : ranges_) {
      const double metres = physics.sensor(sensor)[0];
      writer.put(metres == kNothingSeen ? 1 : std::tanh(metres));
    }
  }

  double reward(const Physics& physics) const override {
    return upright(physics, 20)
           * tolerance(mju_norm3(workspace_place(physics)), {.lower = size_,
                                                             .upper = kInfinity,
                                                             .margin = size_,
                                                             .sigmoid = Sigmoid::linear,
                                                             .value_at_margin = 0});
  }

private:
  static constexpr double kNothingSeen = -1;

  double size_; // distance from the middle of the terrain to its edge, metres
  std::vector<int> ranges_;
};

class QuadrupedFetch final : public Quadruped {
public:
  explicit QuadrupedFetch(Physics& physics)
      : Quadruped(physics),
        ball_(physics.id(mjOBJ_BODY, "ball")),
        target_(physics.id(mjOBJ_SITE, "target")),
        ball_position_(physics.model().jnt_qposadr[physics.id(mjOBJ_JOINT, "ball_root")]),
        ball_velocity_(physics.model().jnt_dofadr[physics.id(mjOBJ_JOINT, "ball_root")]),
        root_velocity_(physics.model().jnt_dofadr[physics.id(mjOBJ_JOINT, "root")]) {
    const mjModel& model = physics.model();
    floor_ = model.geom_size[3 * physics.id(mjOBJ_GEOM, "floor")];
    reach_ = model.site_size[3 * workspace()] + model.geom_size[3 * physics.id(mjOBJ_GEOM, "ball")];
    target_radius_ = model.site_size[3 * target_];
  }

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    std::vector<ArraySpec> all = Quadruped::observations(physics);
    all.push_back(float64_array("ball_state", {9}));
    all.push_back(float64_array("target_position", {3}));
    return all;
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    const double half_azimuth = random.uniform(0, 2 * pi) / 2;
    const double most = .9 * floor_;
    const double x = random.uniform(-most, most);
    const double y = random.uniform(-most, most);
    place_above_ground(physics, root(), x, y,
                       {std::cos(half_azimuth), 0, 0, std::sin(half_azimuth)});
    double* position = physics.data().qpos + ball_position_;
    double* velocity = physics.data().qvel + ball_velocity_;
    position[0] = random.uniform(-most, most);
    position[1] = random.uniform(-most, most);
    position[2] = 2;
    velocity[0] = 5 * random.normal();
    velocity[1] = 5 * random.normal();
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    observe_common(physics, writer);
    const mjData& data = physics.data();
    double vector[3];
    mju_sub3(vector, data.xpos + 3 * ball_, torso_place(physics));
    put_in_torso_frame(physics, vector, writer);
    mju_sub3(vector, data.qvel + ball_velocity_, data.qvel + root_velocity_);
    put_in_torso_frame(physics, vector, writer);
    put_in_torso_frame(physics, data.qvel + ball_velocity_ + 3, writer);
    mju_sub3(vector, data.site_xpos + 3 * target_, torso_place(physics));
    put_in_torso_frame(physics, vector, writer);
  }

  double reward(const Physics& physics) const override {
    const mjData& data = physics.data();
    const double* ball = data.xpos + 3 * ball_;
    const double reach = near(workspace_place(physics), ball, reach_);
    const double fetch = near(data.site_xpos + 3 * target_, ball, target_radius_);
    return upright(physics) * reach * (1 + fetch) / 2;
  }

private:
  /// 1 if the points are at most `radius` metres apart along the floor. Decreases linearly to 0
  /// over half the floor's diagonal beyond that.
  double near(const double* a, const double* b, double radius) const {
    const double dx = a[0] - b[0];
    const double dy = a[1] - b[1];
    return tolerance(std::sqrt(dx * dx + dy * dy), {.lower = 0,
                                                    .upper = radius,
                                                    .margin = floor_ * std::numbers::sqrt2,
                                                    .sigmoid = Sigmoid::linear,
                                                    .value_at_margin = 0});
  }

  int ball_;
  int target_;
  int ball_position_; // index into qpos
  int ball_velocity_; // index into qvel
  int root_velocity_;
  double floor_ = 0; // from the middle to an edge, metres
  double reach_ = 0; // in metres
  double target_radius_ = 0;
};

template <typename T, typename... Arguments>
TaskInfo quadruped(const char* name, const char* variant, Scenery scenery, Arguments... arguments) {
  return {name,
          kQuadrupedFile,
          variant,
          keep_scenery(scenery),
          kQuadrupedTimeLimit,
          .02,
          [arguments...](Physics& physics) { return std::make_unique<T>(physics, arguments...); }};
}

const TaskInfo kQuadrupedTasks[] = {
    quadruped<Move>("quadruped_walk", "walk", {.floor = kQuadrupedTimeLimit * kQuadrupedWalkSpeed},
                    kQuadrupedWalkSpeed),
    quadruped<Move>("quadruped_run", "run", {.floor = kQuadrupedTimeLimit * kQuadrupedRunSpeed},
                    kQuadrupedRunSpeed),
    quadruped<Escape>("quadruped_escape", "escape", {.floor = kEscapeFloor, .terrain = true}),
    quadruped<QuadrupedFetch>("quadruped_fetch", "fetch", {.ball = true}),
};

} // namespace

std::span<const TaskInfo> quadruped_tasks() {
  return kQuadrupedTasks;
}

} // namespace troupe::env

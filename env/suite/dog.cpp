#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "env/suite/model_editing.hpp"
#include "env/suite/remove_parts.hpp"
#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

constexpr const char* kDogFile = "dog.xml";
constexpr double kDogTimeLimit = 15; // seconds
constexpr double kDogWalkSpeed = 1;  // metres/second forward: reward 1 from this to twice this
constexpr double kTrotSpeed = 3;
constexpr double kDogRunSpeed = 9;
constexpr double kStandFraction = .9;      // of the heights in the default pose
constexpr double kUprightDegrees = 30;     // tilt at which the reward starts to decrease
constexpr double kStartSpeedDeviation = 2; // standard deviation; horizontal and turning speeds
constexpr double kLookDistance = 2;        // margin of the reward for reaching the ball, metres

void set_floor(mjSpec& spec, double half_width) {
  double* size = mjs_asGeom(required_element(spec, mjOBJ_GEOM, "floor", kDogFile))->size;
  size[0] = half_width;
  size[1] = half_width;
  size[2] = .1;
}

void remove_ball(mjSpec& spec) {
  const std::pair<mjtObj, const char*> parts[] = {{mjOBJ_CAMERA, "ball"},  {mjOBJ_CAMERA, "head"},
                                                  {mjOBJ_BODY, "ball"},    {mjOBJ_GEOM, "target"},
                                                  {mjOBJ_GEOM, "wall_px"}, {mjOBJ_GEOM, "wall_nx"},
                                                  {mjOBJ_GEOM, "wall_py"}, {mjOBJ_GEOM, "wall_ny"}};
  for (const auto& [type, name] : parts)
    remove_part(spec, type, name, kDogFile);
}

/// The task to stand or, with a speed, to move forward.
class Dog : public Task {
public:
  Dog(Physics& physics, double speed)
      : bodies_{physics.id(mjOBJ_BODY, "skull"), physics.id(mjOBJ_BODY, "torso"),
                physics.id(mjOBJ_BODY, "pelvis")},
        com_velocity_(physics.id(mjOBJ_SENSOR, "torso_linvel")),
        root_(physics.model().jnt_qposadr[physics.id(mjOBJ_JOINT, "root")]),
        speed_(speed) {
    const mjModel& model = physics.model();
    for (int i = 0; i < static_cast<int>(model.njnt); ++i)
      if (model.jnt_type[i] == mjJNT_HINGE)
        hinges_.push_back({model.jnt_qposadr[i], model.jnt_dofadr[i]});
    for (const char* name : {"accelerometer", "velocimeter", "gyro"})
      inertial_.push_back(physics.id(mjOBJ_SENSOR, name));
    for (const char* name : {"foot_L", "foot_R", "hand_L", "hand_R"})
      forces_.push_back(physics.id(mjOBJ_SENSOR, name));
    for (const char* name : {"palm_L", "palm_R", "sole_L", "sole_R"})
      touch_.push_back(physics.id(mjOBJ_SENSOR, name));
    for (const int body : {kTorso, kPelvis}) // the physics is in its default pose here
      stand_heights_.push_back(kStandFraction * height(physics, body));
    weight_ = -model.opt.gravity[2] * model.body_subtreemass[bodies_[kTorso]];
    if (model.nu != model.na)
      throw std::runtime_error("model '" + physics.name()
                               + "' must have one activation for each actuator");
    actuators_ = static_cast<int>(model.nu);
  }

  std::vector<ArraySpec> observations(const Physics&) const override {
    return {float64_array("joint_angles", {std::ssize(hinges_)}),
            float64_array("joint_velocites", {std::ssize(hinges_)}), // dm_control's spelling
            float64_array("torso_pelvis_height", {2}),
            float64_array("z_projection", {9}),
            float64_array("torso_com_velocity", {3}),
            float64_array("inertial_sensors", {9}),
            float64_array("foot_forces", {12}),
            float64_array("touch_sensors", {4}),
            float64_array("actuator_state", {actuators_})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    mjData& data = physics.data();
    const double azimuth = random.uniform(0, 2 * std::numbers::pi);
    const double turn[4] = {std::cos(azimuth / 2), 0, 0, std::sin(azimuth / 2)};
    std::copy(std::begin(turn), std::end(turn), data.qpos + root_ + 3);
    for (const int dof : {0, 1, 5})
      data.qvel[dof] = kStartSpeedDeviation * random.normal();
    const double* range = physics.model().actuator_ctrlrange;
    for (int i = 0; i < actuators_; ++i)
      data.act[i] = random.uniform(range[2 * i], range[2 * i + 1]);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    observe_dog(physics, writer);
  }

  double reward(const Physics& physics) const override {
    const double standing = standing_reward(physics);
    if (speed_ == 0)
      return standing;
    double velocity[3];
    com_velocity(physics, velocity);
    const double forward = tolerance(velocity[0], {.lower = speed_,
                                                   .upper = 2 * speed_,
                                                   .margin = std::max(1.0, speed_),
                                                   .sigmoid = Sigmoid::linear,
                                                   .value_at_margin = 0});
    return standing * (4 * forward + 1) / 5;
  }

protected:
  void observe_dog(const Physics& physics, ObservationWriter& writer) const {
    const mjData& data = physics.data();
    for (const Hinge& hinge : hinges_)
      writer.put(data.qpos[hinge.position]);
    for (const Hinge& hinge : hinges_)
      writer.put(data.qvel[hinge.velocity]);
    for (const int body : {kTorso, kPelvis})
      writer.put(height(physics, body));
    for (const int body : bodies_)
      writer.put(data.xmat + 9 * body + 6, 3); // the z components of its axes in the world frame
    double velocity[3];
    com_velocity(physics, velocity);
    writer.put(velocity, 3);
    for (const auto* sensors : {&inertial_, &forces_, &touch_})
      for (const int id : *sensors)
        writer.put(physics.sensor(id));
    writer.put(data.act, static_cast<std::size_t>(actuators_));
  }

  double standing_reward(const Physics& physics) const {
    static const double upright_cosine = std::cos(kUprightDegrees * std::numbers::pi / 180);
    double reward = 1;
    for (const int body : {kTorso, kPelvis}) {
      const double enough = stand_heights_[static_cast<std::size_t>(body - kTorso)];
      reward *=
          tolerance(height(physics, body), {.lower = enough, .upper = kInfinity, .margin = enough});
    }
    for (const int body : bodies_)
      reward *= tolerance(body_axis(physics, body, kZz), {.lower = upright_cosine,
                                                          .upper = kInfinity,
                                                          .margin = upright_cosine + 1,
                                                          .sigmoid = Sigmoid::linear,
                                                          .value_at_margin = 0});
    double force = 0;
    for (const int id : touch_)
      force += physics.sensor(id)[0];
    return reward
           * tolerance(force, {.lower = weight_,
                               .upper = kInfinity,
                               .margin = weight_,
                               .sigmoid = Sigmoid::linear,
                               .value_at_margin = .9});
  }

private:
  enum Part { kSkull, kTorso, kPelvis };
  struct Hinge {
    int position; // index into qpos
    int velocity; // index into qvel
  };

  double height(const Physics& physics, int part) const {
    return physics.data().xpos[3 * bodies_[static_cast<std::size_t>(part)] + 2];
  }

  /// The velocity of the centre of mass in the torso's frame, metres/second.
  void com_velocity(const Physics& physics, double (&out)[3]) const {
    mju_mulMatTVec3(out, physics.data().xmat + 9 * bodies_[kTorso],
                    physics.sensor(com_velocity_).data());
  }

  std::array<int, 3> bodies_; // indexed by Part
  int com_velocity_;
  int root_;     // index into qpos
  double speed_; // metres/second; 0: only stand
  std::vector<Hinge> hinges_;
  std::vector<int> inertial_;
  std::vector<int> forces_;
  std::vector<int> touch_;
  std::vector<double> stand_heights_; // of torso and pelvis, metres
  double weight_;                     // in newtons
  int actuators_;
};

class DogFetch final : public Dog {
public:
  explicit DogFetch(Physics& physics)
      : Dog(physics, 0),
        head_(physics.id(mjOBJ_SITE, "head")),
        bites_{physics.id(mjOBJ_SITE, "upper_bite"), physics.id(mjOBJ_SITE, "lower_bite")},
        ball_(physics.id(mjOBJ_GEOM, "ball")),
        target_(physics.id(mjOBJ_GEOM, "target")),
        ball_joint_(physics.id(mjOBJ_JOINT, "ball_root")),
        floor_(physics.id(mjOBJ_GEOM, "floor")) {}

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    auto all = Dog::observations(physics);
    all.push_back(float64_array("ball_state", {6}));
    all.push_back(float64_array("target_position", {3}));
    return all;
  }

  /// Throws the ball from near the edge towards the middle.
  void initialize_episode(Physics& physics, Random& random) const override {
    Dog::initialize_episode(physics, random);
    const mjModel& model = physics.model();
    const double radius = .75 * model.geom_size[3 * floor_];
    const double azimuth = random.uniform(0, 2 * std::numbers::pi);
    double* position = physics.data().qpos + model.jnt_qposadr[ball_joint_];
    position[0] = radius * std::sin(azimuth);
    position[1] = radius * std::cos(azimuth);
    position[2] = .05;
    const double top = random.uniform(0, 3); // height to which it rises, metres
    const double speed = random.uniform(0, 5);
    double* velocity = physics.data().qvel + model.jnt_dofadr[ball_joint_];
    velocity[0] = speed * (-std::sin(azimuth) + .05 * random.normal());
    velocity[1] = speed * (-std::cos(azimuth) + .05 * random.normal());
    velocity[2] = std::sqrt(-2 * model.opt.gravity[2] * top);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    observe_dog(physics, writer);
    const mjData& data = physics.data();
    double local[3];
    in_head_frame(physics, data.geom_xpos + 3 * ball_, local);
    writer.put(local, 3);
    double head_motion[6]; // angular velocity, then linear velocity
    double ball_motion[6];
    mj_objectVelocity(&physics.model(), &data, mjOBJ_SITE, head_, head_motion, 0);
    mj_objectVelocity(&physics.model(), &data, mjOBJ_GEOM, ball_, ball_motion, 0);
    double relative[3];
    mju_sub3(relative, ball_motion + 3, head_motion + 3);
    mju_mulMatTVec3(local, data.site_xmat + 9 * head_, relative);
    writer.put(local, 3);
    in_head_frame(physics, data.geom_xpos + 3 * target_, local);
    writer.put(local, 3);
  }

  double reward(const Physics& physics) const override {
    const mjModel& model = physics.model();
    const mjData& data = physics.data();
    const double* ball = data.geom_xpos + 3 * ball_;
    double to_mouth = 0;
    for (const int bite : bites_)
      to_mouth += .5 * mju_dist3(ball, data.site_xpos + 3 * bite);
    double reach = tolerance(to_mouth, {.lower = 0,
                                        .upper = model.site_size[3 * bites_[0]],
                                        .margin = kLookDistance,
                                        .sigmoid = Sigmoid::reciprocal});
    reach = (6 * reach + 1) / 7;
    const double target_radius = model.geom_size[3 * target_];
    const double to_target = mju_dist3(ball, data.geom_xpos + 3 * target_);
    const double near_target = tolerance(to_target, {.lower = 0,
                                                     .upper = target_radius,
                                                     .margin = model.geom_size[3 * floor_],
                                                     .sigmoid = Sigmoid::reciprocal});
    if (to_target < 2 * target_radius) // it may let go of a ball that is already at the target
      reach = 1;
    return standing_reward(physics) * reach * (near_target + 1) / 2;
  }

private:
  void in_head_frame(const Physics& physics, const double* point, double (&out)[3]) const {
    const mjData& data = physics.data();
    double relative[3];
    mju_sub3(relative, point, data.site_xpos + 3 * head_);
    mju_mulMatTVec3(out, data.site_xmat + 9 * head_, relative);
  }

  int head_;
  int bites_[2]; // upper and lower jaw
  int ball_;
  int target_;
  int ball_joint_;
  int floor_;
};

/// A task without the ball. The floor is wide enough to move at `width_speed` for a whole episode.
TaskInfo moving(const std::string& name, double speed, double width_speed) {
  const double half_width = width_speed * kDogTimeLimit;
  return {"dog_" + name,
          kDogFile,
          "no ball, floor " + std::to_string(static_cast<int>(half_width)) + " m",
          [half_width](mjSpec& spec) {
            set_floor(spec, half_width);
            remove_ball(spec);
          },
          kDogTimeLimit,
          .015,
          [speed](Physics& physics) -> std::unique_ptr<Task> {
            return std::make_unique<Dog>(physics, speed);
          }};
}

const TaskInfo kDogTasks[] = {
    moving("stand", 0, kDogWalkSpeed),
    moving("walk", kDogWalkSpeed, kDogWalkSpeed),
    moving("trot", kTrotSpeed, kTrotSpeed),
    moving("run", kDogRunSpeed, kDogRunSpeed),
    {"dog_fetch", kDogFile, "floor 10 m", [](mjSpec& spec) { set_floor(spec, 10); }, kDogTimeLimit,
     .015, &make_task_of<DogFetch>},
};

} // namespace

std::span<const TaskInfo> dog_tasks() {
  return kDogTasks;
}

} // namespace troupe::env

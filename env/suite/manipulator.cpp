#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "env/suite/placement.hpp"
#include "env/suite/planar_arm.hpp"
#include "env/suite/remove_parts.hpp"
#include "env/suite/rewards.hpp"

namespace troupe::env {

namespace {

using std::numbers::pi;

constexpr const char* kManipulatorFile = "manipulator.xml";
constexpr double kClose = .01;   // metres: the reward is 1 up to here
constexpr double kInHand = .1;   // probability that the object starts in the hand
constexpr double kInTarget = .1; // probability that it starts at the target

/// Keeps only the props of one task: the object, its target and, for the insert tasks, the
/// receptacle.
ModelEdit keep_props(bool peg, bool insert) {
  return [peg, insert](mjSpec& spec) {
    for (const char* prop :
         peg ? std::array{"ball", "target_ball", "cup"} : std::array{"peg", "target_peg", "slot"})
      remove_part(spec, mjOBJ_BODY, prop, kManipulatorFile);
    if (!insert)
      remove_part(spec, mjOBJ_BODY, peg ? "slot" : "cup", kManipulatorFile);
  };
}

class Manipulator final : public Task {
public:
  Manipulator(Physics& physics, bool peg, bool insert)
      : arm_(physics),
        peg_(peg),
        object_(physics.id(mjOBJ_BODY, peg ? "peg" : "ball")),
        target_(physics.id(mjOBJ_BODY, peg ? "target_peg" : "target_ball")),
        receptacle_(insert ? physics.id(mjOBJ_BODY, peg ? "slot" : "cup") : -1),
        grasp_(physics.id(mjOBJ_SITE, "grasp")) {
    const std::string name = peg ? "peg" : "ball";
    for (std::size_t i = 0; i < joints_.size(); ++i) {
      const std::string joint = name + "_" + "xzy"[i];
      joints_[i] = {position_of(physics, joint), velocity_of(physics, joint)};
    }
    const auto pair = [&](const std::string& a, const std::string& b) {
      pairs_.push_back({physics.id(mjOBJ_SITE, a), physics.id(mjOBJ_SITE, b)});
    };
    pair(name, "target_" + name);
    if (peg) {
      pair("peg_tip", "target_peg_tip");
      pair("peg_grasp", "grasp");
      pair("peg_pinch", "pinch");
    }
  }

  std::vector<ArraySpec> observations(const Physics&) const override {
    std::vector<ArraySpec> all = arm_.observations();
    all.push_back(float64_array("object_pos", {4}));
    all.push_back(float64_array("object_vel", {3}));
    all.push_back(float64_array("target_pos", {4}));
    return all;
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    draw_until_free(physics, [&] { draw(physics, random); });
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    arm_.observe(physics, writer);
    put_pose(physics, object_, writer);
    for (const Joint& joint : joints_)
      writer.put(physics.data().qvel[joint.velocity]);
    put_pose(physics, target_, writer);
  }

  double reward(const Physics& physics) const override {
    const auto close = [&](std::size_t pair) {
      return tolerance(site_distance(physics, pairs_[pair].a, pairs_[pair].b),
                       {.lower = 0, .upper = kClose, .margin = 2 * kClose});
    };
    if (!peg_)
      return close(0);
    const double bringing = (close(0) + close(1)) / 2;
    const double grasping = (close(2) + close(3)) / 2;
    return std::max(bringing, grasping / 3);
  }

private:
  struct Joint {
    int position;
    int velocity;
  };
  struct SitePair {
    int a;
    int b;
  };
  struct Pose {
    double x; // in metres
    double z;
    double angle; // in radians
  };

  static void place_body(Physics& physics, int body, const Pose& pose) {
    const auto at = static_cast<std::size_t>(body);
    const auto position = physics.own_array("body_pos");
    const auto quaternion = physics.own_array("body_quat");
    position[3 * at] = pose.x;
    position[3 * at + 2] = pose.z;
    quaternion[4 * at] = std::cos(pose.angle / 2);
    quaternion[4 * at + 2] = std::sin(pose.angle / 2);
  }

  Pose in_hand(Physics& physics) const {
    physics.place(); // updates the pose of the hand for the arm just drawn
    const double* position = physics.data().site_xpos + 3 * grasp_;
    const double* axes = physics.data().site_xmat + 9 * grasp_;
    return {position[0], position[2], pi - std::atan2(axes[6], axes[0])};
  }

  void draw(Physics& physics, Random& random) const {
    arm_.randomize(physics, random);
    const double widest = receptacle_ >= 0 ? pi / 3 : pi;
    const Pose target{random.uniform(-.4, .4), random.uniform(.1, .4),
                      random.uniform(-widest, widest)};
    place_body(physics, target_, target);
    if (receptacle_ >= 0)
      place_body(physics, receptacle_, target);

    const double kind = random.uniform();
    Pose object = target;
    if (kind < kInHand) {
      object = in_hand(physics);
    } else if (kind >= kInHand + kInTarget) {
      object = {random.uniform(-.5, .5), random.uniform(0, .7), random.uniform(0, 2 * pi)};
      // As in dm_control, this velocity stays if the draw is rejected and the object of the next
      // one starts in the hand or at the target.
      physics.data().qvel[joints_[0].velocity] = random.uniform(-5, 5);
    }
    double* positions = physics.data().qpos;
    positions[joints_[0].position] = object.x;
    positions[joints_[1].position] = object.z;
    positions[joints_[2].position] = object.angle;
  }

  PlanarArm arm_;
  bool peg_;
  int object_;
  int target_;
  int receptacle_; // -1 if there is none
  int grasp_;
  std::array<Joint, 3> joints_{}; // of the object: x, z, rotation
  std::vector<SitePair> pairs_;   // the sites of a pair should come together
};

TaskInfo manipulator(const char* name, bool peg, bool insert) {
  return {name,
          kManipulatorFile,
          std::string(peg ? "peg" : "ball") + (insert ? " to insert" : ""),
          keep_props(peg, insert),
          10,
          .01,
          [peg, insert](Physics& physics) {
            return std::make_unique<Manipulator>(physics, peg, insert);
          }};
}

const TaskInfo kManipulatorTasks[] = {
    manipulator("manipulator_bring_ball", false, false),
    manipulator("manipulator_bring_peg", true, false),
    manipulator("manipulator_insert_ball", false, true),
    manipulator("manipulator_insert_peg", true, true),
};

} // namespace

std::span<const TaskInfo> manipulator_tasks() {
  return kManipulatorTasks;
}

} // namespace troupe::env

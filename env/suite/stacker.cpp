#include <algorithm>
#include <numbers>

#include "env/suite/placement.hpp"
#include "env/suite/planar_arm.hpp"
#include "env/suite/remove_parts.hpp"
#include "env/suite/rewards.hpp"

namespace troupe::env {

namespace {

constexpr const char* kStackerFile = "stacker.xml";
constexpr int kMostBoxes = 4; // in the model file

ModelEdit keep_boxes(int boxes) {
  return [boxes](mjSpec& spec) {
    for (int i = boxes; i < kMostBoxes; ++i)
      remove_part(spec, mjOBJ_BODY, "box" + std::to_string(i), kStackerFile);
  };
}

class Stacker final : public Task {
public:
  Stacker(Physics& physics, int boxes)
      : arm_(physics),
        target_(physics.id(mjOBJ_BODY, "target")),
        target_site_(physics.id(mjOBJ_SITE, "target")),
        grasp_(physics.id(mjOBJ_SITE, "grasp")),
        half_box_(physics.model().geom_size[3 * physics.id(mjOBJ_GEOM, "target")]) {
    for (int i = 0; i < boxes; ++i) {
      const std::string name = "box" + std::to_string(i);
      Box box{physics.id(mjOBJ_BODY, name), physics.id(mjOBJ_SITE, name), {}, {}};
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::string joint = name + "_" + "xyz"[axis];
        box.positions[axis] = position_of(physics, joint);
        box.velocities[axis] = velocity_of(physics, joint);
      }
      boxes_.push_back(box);
    }
  }

  std::vector<ArraySpec> observations(const Physics&) const override {
    const auto boxes = static_cast<std::int64_t>(boxes_.size());
    std::vector<ArraySpec> all = arm_.observations();
    all.push_back(float64_array("box_pos", {boxes, 4}));
    all.push_back(float64_array("box_vel", {3 * boxes}));
    all.push_back(float64_array("target_pos", {2}));
    return all;
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    const auto at = 3 * static_cast<std::size_t>(target_);
    const auto place = physics.own_array("body_pos");
    draw_until_free(physics, [&] {
      arm_.randomize(physics, random);
      const auto level = static_cast<int>(random.uniform(0, static_cast<double>(boxes_.size())));
      place[at + 2] = half_box_ * (2 * level + 1);
      place[at] = random.uniform(-.37, .37);
      double* positions = physics.data().qpos;
      for (const Box& box : boxes_) {
        positions[box.positions[0]] = random.uniform(.1, .3);
        positions[box.positions[1]] = random.uniform(0, 2 * std::numbers::pi);
        positions[box.positions[2]] = random.uniform(0, .7);
      }
    });
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    arm_.observe(physics, writer);
    for (const Box& box : boxes_)
      put_pose(physics, box.body, writer);
    for (const Box& box : boxes_)
      for (const int velocity : box.velocities)
        writer.put(physics.data().qvel[velocity]);
    put_place(physics, target_, writer);
  }

  /// Rewards a box at the target with the hand away from it.
  double reward(const Physics& physics) const override {
    double nearest = kInfinity;
    for (const Box& box : boxes_)
      nearest = std::min(nearest, site_distance(physics, box.site, target_site_));
    const double box_there = tolerance(nearest, {.margin = 2 * half_box_});
    const double hand_away = tolerance(site_distance(physics, grasp_, target_site_),
                                       {.lower = .1, .upper = kInfinity, .margin = .01});
    return box_there * hand_away;
  }

private:
  struct Box {
    int body;
    int site;
    int positions[3]; // indices into qpos: x, rotation about y, z
    int velocities[3];
  };

  PlanarArm arm_;
  int target_;
  int target_site_;
  int grasp_;
  double half_box_; // half the edge of a box, metres
  std::vector<Box> boxes_;
};

TaskInfo stack(const char* name, int boxes) {
  return {name,
          kStackerFile,
          std::to_string(boxes) + " boxes",
          keep_boxes(boxes),
          10,
          .01,
          [boxes](Physics& physics) { return std::make_unique<Stacker>(physics, boxes); }};
}

const TaskInfo kStackerTasks[] = {stack("stacker_stack_2", 2), stack("stacker_stack_4", 4)};

} // namespace

std::span<const TaskInfo> stacker_tasks() {
  return kStackerTasks;
}

} // namespace troupe::env

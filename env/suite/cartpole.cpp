#include <algorithm>
#include <numbers>
#include <stdexcept>

#include "env/suite/model_editing.hpp"
#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

constexpr int kFirstPole = 2; // body indices: world, cart, poles

constexpr const char* kCartpoleFile = "cartpole.xml";

mjsElement* element(mjSpec& spec, mjtObj type, const char* name) {
  return required_element(spec, type, name, kCartpoleFile);
}

void set_position(double (&position)[3], double x, double y, double z) {
  position[0] = x;
  position[1] = y;
  position[2] = z;
}

/// Adds more poles below the first one, lowers the floor and moves the cameras back.
void add_poles(mjSpec& spec, int poles) {
  const mjsDefault* pole =
      required(mjs_findDefault(&spec, "pole"), kCartpoleFile, "default class 'pole'");
  mjsBody* parent = required(mjs_findBody(&spec, "pole_1"), kCartpoleFile, "body 'pole_1'");
  for (int i = 2; i <= poles; ++i) {
    mjsBody* body = mjs_addBody(parent, pole);
    set_position(body->pos, 0, 0, 1);
    mjs_setName(body->element, ("pole_" + std::to_string(i)).c_str());
    mjs_setName(mjs_addJoint(body, pole)->element, ("hinge_" + std::to_string(i)).c_str());
    mjs_setName(mjs_addGeom(body, pole)->element, ("pole_" + std::to_string(i)).c_str());
    parent = body;
  }
  set_position(mjs_asGeom(element(spec, mjOBJ_GEOM, "floor"))->pos, 0, 0, 1 - poles - .05);
  set_position(mjs_asCamera(element(spec, mjOBJ_CAMERA, "fixed"))->pos, 0, -1 - 2 * poles, 1);
  set_position(mjs_asCamera(element(spec, mjOBJ_CAMERA, "lookatcart"))->pos, 0, -2 * poles, 2);
}

class Cartpole final : public Task {
public:
  Cartpole(Physics& physics, bool swing_up, bool sparse)
      : bodies_(static_cast<int>(physics.model().nbody)),
        dofs_(static_cast<int>(physics.model().nv)),
        swing_up_(swing_up),
        sparse_(sparse) {}

  std::vector<ArraySpec> observations(const Physics&) const override {
    return {float64_array("position", {1 + 2 * (bodies_ - kFirstPole)}),
            float64_array("velocity", {dofs_})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    mjData& data = physics.data();
    if (swing_up_) { // cart in the middle, first pole hanging down
      data.qpos[0] = .01 * random.normal();
      data.qpos[1] = std::numbers::pi + .01 * random.normal();
      for (int i = 2; i < dofs_; ++i)
        data.qpos[i] = .1 * random.normal();
    } else {
      data.qpos[0] = random.uniform(-.1, .1);
      for (int i = 1; i < dofs_; ++i)
        data.qpos[i] = random.uniform(-.034, .034);
    }
    for (int i = 0; i < dofs_; ++i)
      data.qvel[i] = .01 * random.normal();
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    writer.put(physics.data().qpos[0]);
    for (int body = kFirstPole; body < bodies_; ++body) {
      writer.put(body_axis(physics, body, kZz));
      writer.put(body_axis(physics, body, kXz));
    }
    writer.put(physics.data().qvel, static_cast<std::size_t>(dofs_));
  }

  double reward(const Physics& physics) const override {
    return sparse_ ? sparse_reward(physics) : smooth_reward(physics);
  }

private:
  double sparse_reward(const Physics& physics) const {
    double reward = tolerance(physics.data().qpos[0], {.lower = -.25, .upper = .25});
    for (int body = kFirstPole; body < bodies_; ++body)
      reward *= tolerance(body_axis(physics, body, kZz), {.lower = .995, .upper = 1});
    return reward;
  }

  double smooth_reward(const Physics& physics) const {
    const mjData& data = physics.data();
    double upright = 0;
    for (int body = kFirstPole; body < bodies_; ++body)
      upright += (body_axis(physics, body, kZz) + 1) / 2;
    upright /= bodies_ - kFirstPole;
    const double centered = (1 + tolerance(data.qpos[0], {.margin = 2})) / 2;
    const double control =
        tolerance(data.ctrl[0], {.margin = 1, .sigmoid = Sigmoid::quadratic, .value_at_margin = 0});
    double slow = 1;
    for (int i = 1; i < dofs_; ++i)
      slow = std::min(slow, tolerance(data.qvel[i], {.margin = 5}));
    return upright * ((4 + control) / 5) * ((1 + slow) / 2) * centered;
  }

  int bodies_;
  int dofs_;
  bool swing_up_;
  bool sparse_;
};

const TaskInfo kCartpoleTasks[] = {
    {"cartpole_balance", "cartpole.xml", "", nullptr, 10, 0, &make_task_of<Cartpole, false, false>},
    {"cartpole_balance_sparse", "cartpole.xml", "", nullptr, 10, 0,
     &make_task_of<Cartpole, false, true>},
    {"cartpole_swingup", "cartpole.xml", "", nullptr, 10, 0, &make_task_of<Cartpole, true, false>},
    {"cartpole_swingup_sparse", "cartpole.xml", "", nullptr, 10, 0,
     &make_task_of<Cartpole, true, true>},
    {"cartpole_two_poles", "cartpole.xml", "two poles", [](mjSpec& spec) { add_poles(spec, 2); },
     10, 0, &make_task_of<Cartpole, true, false>},
    {"cartpole_three_poles", "cartpole.xml", "three poles",
     [](mjSpec& spec) { add_poles(spec, 3); }, 10, 0, &make_task_of<Cartpole, true, false>},
};

} // namespace

std::span<const TaskInfo> cartpole_tasks() {
  return kCartpoleTasks;
}

} // namespace troupe::env

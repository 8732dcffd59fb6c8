#include <stdexcept>

#include "env/suite/model_editing.hpp"
#include "env/suite/numbered_name.hpp"
#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

constexpr const char* kSwimmerFile = "swimmer.xml";
constexpr int kFewestLinks = 3;
constexpr int kMostLinks = 100;
constexpr int kRootJoints = 3;          // two slides and a hinge, before the joints between links
constexpr int kSensorsBeforeLinks = 12; // index of the head's velocities in sensordata
constexpr int kSensorsOfLink = 6;       // linear and angular velocity
constexpr double kCloseTarget = .2;     // probability of a close target

const mjsDefault* default_class(mjSpec& spec, const char* name) {
  return required(mjs_findDefault(&spec, name), kSwimmerFile,
                  std::string("default class '") + name + "'");
}

void add_sensor(mjSpec& spec, mjtSensor type, const std::string& name, const std::string& site) {
  mjsSensor* sensor = mjs_addSensor(&spec);
  sensor->type = type;
  sensor->objtype = mjOBJ_SITE;
  mjs_setString(sensor->objname, site.c_str());
  mjs_setName(sensor->element, name.c_str());
}

/// Adds another link behind `parent`, with a joint that turns by up to `range_degrees` in either
/// direction.
mjsBody* add_link(mjSpec& spec, mjsBody* parent, int index, double range_degrees) {
  const std::string number = std::to_string(index);
  const mjsDefault* swimmer = default_class(spec, "swimmer");
  mjsBody* body = mjs_addBody(parent, swimmer);
  body->pos[1] = .1;
  mjs_setName(body->element, ("segment_" + number).c_str());
  for (const std::string shape : {"visual", "inertial"}) {
    mjsGeom* geom = mjs_addGeom(body, default_class(spec, shape.c_str()));
    mjs_setName(geom->element, (shape + "_" + number).c_str());
  }
  mjs_setName(mjs_addSite(body, swimmer)->element, ("site_" + number).c_str());
  mjsJoint* joint = mjs_addJoint(body, swimmer);
  joint->range[0] = -range_degrees;
  joint->range[1] = range_degrees;
  mjs_setName(joint->element, ("joint_" + number).c_str());
  return body;
}

/// Adds links to the head in the file, so that the swimmer has `links` links. Cameras that track it
/// are moved away in proportion to its length.
void add_links(mjSpec& spec, int links) {
  mjsBody* head = required(mjs_findBody(&spec, "head"), kSwimmerFile, "body 'head'");
  mjsBody* parent = head;
  for (int i = 0; i < links - 1; ++i) {
    const std::string number = std::to_string(i);
    parent = add_link(spec, parent, i, 360.0 / links);
    add_motor(spec, "motor_" + number, "joint_" + number);
    add_sensor(spec, mjSENS_VELOCIMETER, "velocimeter_" + number, "site_" + number);
    add_sensor(spec, mjSENS_GYRO, "gyro_" + number, "site_" + number);
  }
  for (mjsElement* element = mjs_firstChild(head, mjOBJ_CAMERA, 0); element != nullptr;
       element = mjs_nextChild(head, element, 0)) {
    mjsCamera* camera = mjs_asCamera(element);
    if (camera->mode == mjCAMLIGHT_TRACKCOM)
      for (double& coordinate : camera->pos)
        coordinate *= links / 6.0;
  }
}

/// The positions of the target and of its light are fields of the model, so each environment has
/// its own.
class Swimmer final : public Task {
public:
  explicit Swimmer(Physics& physics)
      : head_(physics.id(mjOBJ_BODY, "head")),
        nose_(physics.id(mjOBJ_GEOM, "nose")),
        target_(physics.id(mjOBJ_GEOM, "target")),
        light_(physics.id(mjOBJ_LIGHT, "target_light")),
        joints_(static_cast<int>(physics.model().nq) - kRootJoints) {
    physics.own_array("geom_pos");
    physics.own_array("light_pos");
  }

  std::vector<ArraySpec> observations(const Physics&) const override {
    return {float64_array("joints", {joints_}), float64_array("to_target", {2}),
            float64_array("body_velocities", {3 * (joints_ + 1)})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    randomize_joints(physics, random);
    const double half_width = random.uniform() < kCloseTarget ? .3 : 2; // in metres
    const auto target =
        physics.own_array("geom_pos").subspan(static_cast<std::size_t>(3 * target_));
    const auto light = physics.own_array("light_pos").subspan(static_cast<std::size_t>(3 * light_));
    for (const std::size_t axis : {0U, 1U}) {
      target[axis] = random.uniform(-half_width, half_width);
      light[axis] = target[axis];
    }
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    writer.put(physics.data().qpos + kRootJoints, static_cast<std::size_t>(joints_));
    double target[3];
    nose_to_target(physics, target);
    writer.put(target, 2);
    const double* sensors = physics.data().sensordata + kSensorsBeforeLinks;
    for (int link = 0; link <= joints_; ++link, sensors += kSensorsOfLink)
      for (const int motion_in_plane : {0, 1, 5})
        writer.put(sensors[motion_in_plane]);
  }

  double reward(const Physics& physics) const override {
    const double target_size = physics.model().geom_size[3 * target_];
    double target[3];
    nose_to_target(physics, target);
    return tolerance(mju_norm(target, 2), {.lower = 0,
                                           .upper = target_size,
                                           .margin = 5 * target_size,
                                           .sigmoid = Sigmoid::long_tail});
  }

private:
  /// The vector from the nose to the target in the head's frame, in metres.
  void nose_to_target(const Physics& physics, double (&out)[3]) const {
    const mjData& data = physics.data();
    double global[3];
    mju_sub3(global, data.geom_xpos + 3 * target_, data.geom_xpos + 3 * nose_);
    mju_mulMatTVec3(out, data.xmat + 9 * head_, global);
  }

  int head_;
  int nose_;
  int target_;
  int light_;
  int joints_; // the joints between links
};

TaskInfo swimmer(int links) {
  const std::string number = std::to_string(links);
  return {"swimmer_swimmer" + number,
          kSwimmerFile,
          number + " links",
          [links](mjSpec& spec) { add_links(spec, links); },
          30,
          .03,
          &make_task_of<Swimmer>};
}

const TaskInfo kSwimmerTasks[] = {swimmer(6), swimmer(15)};

} // namespace

std::span<const TaskInfo> swimmer_tasks() {
  return kSwimmerTasks;
}

std::optional<TaskInfo> find_swimmer(const std::string& name) {
  std::string_view rest = name;
  if (!take_prefix(rest, "swimmer_swimmer"))
    return {};
  const std::optional<int> links = take_number(rest);
  if (!links || !rest.empty())
    return {};
  if (*links < kFewestLinks || *links > kMostLinks)
    throw std::invalid_argument("task: '" + name + "': a swimmer has "
                                + std::to_string(kFewestLinks) + " to " + std::to_string(kMostLinks)
                                + " links; write for example 'swimmer_swimmer6'");
  return swimmer(*links);
}

} // namespace troupe::env

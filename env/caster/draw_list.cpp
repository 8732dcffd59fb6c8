#include "env/caster/draw_list.hpp"

#include <stdexcept>
#include <string>

namespace troupe::env::caster {

int most_listed_geoms(const mjModel& model) {
  constexpr int kPerTendon = 128; // a slack tendon hangs as a chain of up to a few dozen capsules
  return static_cast<int>(model.ngeom + model.nsite + model.nskin + model.nflex + 4 * model.nwrap
                          + kPerTendon * model.ntendon + 64);
}

DrawList::DrawList(const mjModel& model, int camera) {
  mjv_defaultOption(&option_);
  option_.flags[mjVIS_RANGEFINDER] = 0; // as in dm_control
  mjv_defaultPerturb(&perturb_);
  mjv_defaultCamera(&camera_);
  if (camera < 0) {
    mjv_defaultFreeCamera(&model, &camera_);
  } else {
    camera_.type = mjCAMERA_FIXED;
    camera_.fixedcamid = camera;
  }
  mjv_defaultScene(&scene_);
  mjv_makeScene(&model, &scene_, most_listed_geoms(model));
}

DrawList::~DrawList() {
  mjv_freeScene(&scene_);
}

void DrawList::look_through(const mjModel& model, const mjvCamera& camera) {
  const auto check = [](const char* what, int number, mjtSize count) {
    if (number < 0 || number >= count)
      throw std::invalid_argument(std::string(what) + " of the camera is " + std::to_string(number)
                                  + "; the model has " + std::to_string(count)
                                  + ", numbered from 0");
  };
  if (camera.type == mjCAMERA_FIXED)
    check("fixedcamid", camera.fixedcamid, model.ncam);
  else if (camera.type == mjCAMERA_TRACKING)
    check("trackbodyid", camera.trackbodyid, model.nbody);
  else if (camera.type != mjCAMERA_FREE)
    throw std::invalid_argument("type of the camera is " + std::to_string(camera.type)
                                + "; it must be free, tracking or fixed");
  camera_ = camera;
}

void DrawList::show(const mjvOption& option) {
  if (option.flags[mjVIS_CONVEXHULL] != 0)
    throw std::invalid_argument("flags[mjVIS_CONVEXHULL] of the option is "
                                + std::to_string(option.flags[mjVIS_CONVEXHULL])
                                + "; it must be 0, because convex hulls are not drawn");
  option_ = option;
}

const mjvScene& DrawList::update(const mjModel& model, const mjData& data) {
  list(model, data);
  while (scene_.ngeom >= scene_.maxgeom) { // MuJoCo may have left out some
    mjv_makeScene(&model, &scene_, 2 * scene_.maxgeom);
    list(model, data);
  }
  return scene_;
}

void DrawList::list(const mjModel& model, const mjData& data) {
  scene_.status = 1; // MuJoCo does not warn of a full list
  // mjv_updateScene needs a mutable mjData for its scratch stack, but does not change the state.
  auto* mutable_data = const_cast<mjData*>(&data);
  // Update the camera first. Infinite planes and the order of transparent objects depend on it, and
  // mjv_updateScene alone would use the previous picture's camera.
  mjv_updateCamera(&model, mutable_data, &camera_, &scene_);
  if (model.nskin == 0 || model.nflex > 0) {
    mjv_updateScene(&model, mutable_data, &option_, &perturb_, &camera_, mjCAT_ALL, &scene_);
  } else { // the same, but without moving the skins: class Skin does that faster
    scene_.ngeom = 0;
    mjv_addGeoms(&model, mutable_data, &option_, &perturb_, mjCAT_ALL, &scene_);
    mjv_makeLights(&model, mutable_data, &scene_);
  }
}

} // namespace troupe::env::caster

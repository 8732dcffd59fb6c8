#pragma once

#include <mujoco/mujoco.h>

namespace troupe::env::caster {

/// An upper bound of the number of geoms that mjv_updateScene lists by default.
int most_listed_geoms(const mjModel& model);

/// MuJoCo's own list of what to draw (geoms, sites, tendons, lights, camera), made without OpenGL.
/// Not thread-safe.
class DrawList {
public:
  /// `camera`: index of the model's camera, or -1 for the free camera.
  DrawList(const mjModel& model, int camera);
  ~DrawList();
  DrawList(const DrawList&) = delete;
  DrawList& operator=(const DrawList&) = delete;

  /// Switches to `camera`, starting with the next update(). Throws std::invalid_argument if the
  /// model does not have the camera or the body that it tracks.
  void look_through(const mjModel& model, const mjvCamera& camera);
  /// Throws std::invalid_argument if the option asks for convex hulls, which are not drawn.
  void show(const mjvOption& option);

  /// Lists what to draw for a state. Allocates only if the state or the option shows more than any
  /// earlier one (slack tendons, frames).
  const mjvScene& update(const mjModel& model, const mjData& data);

private:
  void list(const mjModel& model, const mjData& data);

  mjvScene scene_;
  mjvOption option_;
  mjvPerturb perturb_;
  mjvCamera camera_;
};

} // namespace troupe::env::caster

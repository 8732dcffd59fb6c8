#pragma once

#include <mujoco/mujoco.h>

namespace troupe::env::caster {

/// MuJoCo's own list of what to draw (geoms, sites, tendons, lights, camera), without OpenGL.
/// One thread at a time.
class DrawList {
public:
  /// `camera`: number of the model's camera, -1 for the free one.
  DrawList(const mjModel& model, int camera);
  ~DrawList();
  DrawList(const DrawList&) = delete;
  DrawList& operator=(const DrawList&) = delete;

  /// From the next update() on. Throws std::invalid_argument on a camera or body that the model
  /// does not have.
  void look_through(const mjModel& model, const mjvCamera& camera);
  void show(const mjvOption& option) { option_ = option; }

  /// Allocates only when the state shows more than any before (slack tendons).
  const mjvScene& update(const mjModel& model, const mjData& data);
  const mjvScene& scene() const { return scene_; }

private:
  mjvScene scene_;
  mjvOption option_;
  mjvPerturb perturb_;
  mjvCamera camera_;
};

} // namespace troupe::env::caster

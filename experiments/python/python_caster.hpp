#pragma once

#include <mujoco/mujoco.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "env/caster/ray_caster.hpp"
#include "env/caster/ray_query.hpp"
#include "experiments/python/picture_kind.hpp"

namespace troupe::python {

/// Draws models of MuJoCo's own Python package. It gets them by address; the caller must keep them
/// alive. One thread at a time; a second one gets a RuntimeError. The interpreter's lock is
/// released during drawing.
class PythonCaster {
public:
  PythonCaster(std::uintptr_t model, int height, int width, bool effects, bool fog, bool grey);

  /// `camera` and `option` are MuJoCo's MjvCamera and MjvOption; None keeps the previous ones.
  void update(std::uintptr_t data, const pybind11::object& camera, const pybind11::object& option);
  void draw(PictureKind kind, const pybind11::array& out);

  /// Draws pictures of the positions [n, nq] into `out` [n, …].
  void draw_positions(const pybind11::array_t<double, pybind11::array::c_style>& positions,
                      const pybind11::object& camera, const pybind11::object& option,
                      PictureKind kind, int threads, const pybind11::array& out);

  /// Casts rays with directions [n, 3] from origins [n, 3] or [3] into a state, and finds where
  /// each first meets a geom. Fills `distances` float32 [n] and `geoms` int32 [n].
  using Points = pybind11::array_t<double, pybind11::array::c_style>;
  void cast_rays(std::uintptr_t data, const Points& origins, const Points& directions,
                 const env::RayQueryOptions& options, const pybind11::array& distances,
                 const pybind11::array& geoms);

  int channels() const { return channels_; }

private:
  class Use;
  void look(env::RayCaster& caster) const;
  void remember(const pybind11::object& camera, const pybind11::object& option);

  const mjModel* model_;
  int channels_;
  std::shared_ptr<const env::CasterModel> shared_;
  std::vector<std::unique_ptr<env::RayCaster>>
      casters_;                          // one per thread; the first draws single pictures
  std::unique_ptr<env::RayQuery> query_; // made when rays are first cast
  mjvCamera camera_;
  mjvOption option_;
  std::mutex mutex_;
};

} // namespace troupe::python

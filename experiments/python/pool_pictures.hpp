#pragma once

#include <pybind11/numpy.h>

#include <memory>
#include <string>
#include <vector>

#include "env/caster/ray_caster.hpp"
#include "env/pool/environment_pool.hpp"
#include "experiments/python/picture_kind.hpp"

namespace troupe::python {

/// Draws what the environments of a pool simulate at present. Its casters, one per thread, are kept
/// for the next pictures. One thread at a time may call it, with the interpreter's lock, which is
/// released while pictures are drawn.
class PoolPictures {
public:
  /// Draws the first `count` environments on at most `threads` threads; returns [count, height,
  /// width, …]. Throws std::invalid_argument if the environments are not MuJoCo tasks or are in
  /// flight, or if the size or camera is invalid.
  pybind11::array draw(env::EnvironmentPool& pool, int count, PictureKind kind, int height,
                       int width, const std::string& camera, int threads);

private:
  struct Drawer {
    std::shared_ptr<const env::CompiledModel> model;
    std::unique_ptr<env::RayCaster> caster;
  };
  env::RayCaster& caster_of(Drawer& drawer, const env::Physics& physics) const;

  env::CastOptions options_{.layout = env::PixelLayout::channels_last}; // without the camera
  std::string camera_;
  std::vector<Drawer> drawers_;
};

} // namespace troupe::python

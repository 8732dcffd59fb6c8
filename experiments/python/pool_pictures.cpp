#include "experiments/python/pool_pictures.hpp"

#include <algorithm>
#include <stdexcept>

#include "env/mujoco_errors.hpp"
#include "env/render/renderer.hpp"
#include "experiments/python/on_workers.hpp"
#include "experiments/python/released_lock.hpp"

namespace py = pybind11;

namespace troupe::python {

env::RayCaster& PoolPictures::caster_of(Drawer& drawer, const env::Physics& physics) const {
  if (drawer.model != physics.compiled()) {
    env::CastOptions options = options_;
    options.camera = env::find_camera(physics, camera_);
    drawer.caster =
        std::make_unique<env::RayCaster>(env::caster_model(physics.compiled()), options);
    drawer.model = physics.compiled();
  }
  return *drawer.caster;
}

py::array PoolPictures::draw(env::EnvironmentPool& pool, int count, PictureKind kind, int height,
                             int width, const std::string& camera, int threads) {
  env::check_pixel_size({.height = height, .width = width});
  std::vector<env::Physics*> shown;
  for (int i = 0; i < count; ++i) {
    shown.push_back(pool.physics(i));
    if (shown.back() == nullptr)
      throw std::invalid_argument(pool.spec().name
                                  + " is not a MuJoCo task and cannot be rendered");
  }
  if (height != options_.height || width != options_.width || camera != camera_) {
    drawers_.clear();
    options_.height = height;
    options_.width = width;
    camera_ = camera;
  }
  const std::size_t workers =
      std::clamp<std::size_t>(shown.size(), 1, static_cast<std::size_t>(threads));
  drawers_.resize(std::max(drawers_.size(), workers));

  py::array out = empty_pictures(kind, shown.size(), options_);
  const std::size_t bytes = picture_bytes(kind, options_);
  auto* const memory = static_cast<std::byte*>(out.mutable_data());
  const ReleasedLock released;
  on_workers(workers, shown.size(), [&](std::size_t worker, auto& next) {
    for (std::size_t i = next++; i < shown.size(); i = next++) {
      const env::Physics& physics = *shown[i];
      const env::MujocoScope scope(physics.name());
      env::RayCaster& caster = caster_of(drawers_[worker], physics);
      caster.update(physics.model(), physics.data());
      draw_picture(caster, kind, {memory + i * bytes, bytes});
    }
  });
  return out;
}

} // namespace troupe::python

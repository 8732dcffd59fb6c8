#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "env/compiled_model.hpp"
#include "env/pixel_layout.hpp"

namespace troupe::env {

/// The part of a compiled model that all pictures share: textures, meshes and the sky. Immutable:
/// any number of RayCasters on any threads can share one.
class CasterModel;

/// Returns the CasterModel of `compiled`; all callers share one while it is in use. Thread-safe.
std::shared_ptr<const CasterModel> caster_model(std::shared_ptr<const CompiledModel> compiled);

struct CastOptions {
  int height = 84; // in pixels, 1 to 4096
  int width = 84;
  int camera = 0;      // index of the model's camera; -1 is the free camera
  bool effects = true; // shadows, mirrors, anti-aliasing
  bool fog = false;    // the model's fog (visual/map, visual/rgba); off by default, as in MuJoCo
  bool grey = false;   // one channel of Rec. 601 luma instead of three of RGB
  PixelLayout layout = PixelLayout::channels_first;
};

/// Draws a state as MuJoCo's renderer does, but on the processor and without OpenGL: everything
/// that mjv_updateScene shows by default, with lights, shadows, mirrors and anti-aliasing
/// (README.md has the formulas).
///
/// A caster is not thread-safe, but any number of casters may run in parallel. Drawing allocates
/// only if a state shows more than any earlier one. The picture does not depend on the width of the
/// processor's vectors. Bodies whose positions are not finite are not drawn.
///
/// The mjModel passed to draw() is the compiled one or a view of it with private arrays (colours,
/// materials, sizes, lights, cameras, positions, height fields). Its sizes, meshes and textures
/// must be the compiled model's.
class RayCaster {
public:
  /// Throws std::invalid_argument if the size or camera is invalid.
  RayCaster(std::shared_ptr<const CasterModel> model, const CastOptions& options);
  ~RayCaster();
  RayCaster(RayCaster&&) noexcept;
  RayCaster& operator=(RayCaster&&) noexcept;

  const CastOptions& options() const;
  int channels() const { return options().grey ? 1 : 3; }
  std::size_t bytes() const; // of one picture

  /// Switches to `camera`, starting with the next picture. It may be free or track a body. Throws
  /// std::invalid_argument if the model does not have the camera or the body.
  void look_through(const mjvCamera& camera);
  /// Selects which geoms, sites, tendons and other objects to draw. The default is dm_control's.
  /// Throws std::invalid_argument if the option asks for convex hulls, which are not drawn.
  void show(const mjvOption& option);

  /// Reads the state. The functions below that take no state draw it, and may be called repeatedly.
  void update(const mjModel& model, const mjData& data);
  void draw(std::span<std::uint8_t> out);
  void draw_depth(std::span<float> out);
  void draw_segmentation(std::span<std::int32_t> out, std::span<float> distances = {});

  /// Row 0 is the top row. Throws std::invalid_argument unless `out` has bytes() bytes.
  void draw(const mjModel& model, const mjData& data, std::span<std::uint8_t> out);

  /// Writes the distance from the camera's plane at each pixel's centre, [height, width] in metres;
  /// where there is nothing, that of the far plane. This is MuJoCo's depth buffer converted to
  /// metres, as in dm_control. Transparent objects are ignored.
  void draw_depth(const mjModel& model, const mjData& data, std::span<float> out);

  /// Writes the object id and mjtObj of what is visible at each pixel's centre, [height, width, 2];
  /// -1, -1 where there is nothing. As in dm_control. `distances` receives the distances of the
  /// same objects, [height, width] as in draw_depth(), unless it is empty. Transparent objects
  /// count.
  void draw_segmentation(const mjModel& model, const mjData& data, std::span<std::int32_t> out,
                         std::span<float> distances = {});

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::env

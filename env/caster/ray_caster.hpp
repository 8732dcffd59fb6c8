#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "env/compiled_model.hpp"
#include "env/pixel_layout.hpp"

namespace troupe::env {

/// What pictures need of the compiled model alone (textures, meshes, the sky). Immutable: any
/// number of RayCasters on any threads share one.
class CasterModel;

/// The CasterModel of `compiled`: the same one while it is in use. Any thread.
std::shared_ptr<const CasterModel> caster_model(std::shared_ptr<const CompiledModel> compiled);

struct CastOptions {
  int height = 84; // pixels, 1 to 4096
  int width = 84;
  int camera = 0;      // number of the model's camera; -1: the free camera
  bool effects = true; // shadows, mirrors, anti-aliasing
  bool fog = false;    // the model's (visual/map, visual/rgba); MuJoCo's is off by default
  bool grey = false;   // one channel of Rec. 601 luma instead of three of RGB
  PixelLayout layout = PixelLayout::channels_first;
  /// Bytes from one row to the next (of one plane, with channels_first); 0: dense. With
  /// channels_first a plane is `height * row_stride` bytes.
  std::size_t row_stride = 0;
};

/// Draws MuJoCo's picture of a state on the processor, without OpenGL: what mjv_updateScene shows
/// by default, lit, shadowed, mirrored and smoothed as MuJoCo's renderer does (README.md has the
/// formulas).
///
/// One thread at a time each; any number of them in parallel. Drawing allocates only when a state
/// shows more than any before. The picture does not depend on the width of the processor's vectors.
/// Bodies at positions that are not finite are not drawn.
///
/// The mjModel given to draw() is the compiled one or a view of it with private arrays (colours,
/// materials, sizes, lights, cameras, positions, height fields); its sizes, meshes and textures
/// must be those of the compiled model.
class RayCaster {
public:
  /// Throws std::invalid_argument (size, camera, row stride).
  RayCaster(std::shared_ptr<const CasterModel> model, const CastOptions& options);
  ~RayCaster();
  RayCaster(RayCaster&&) noexcept;
  RayCaster& operator=(RayCaster&&) noexcept;

  const CastOptions& options() const;
  int channels() const { return options().grey ? 1 : 3; }
  std::size_t bytes() const; // of one picture, gaps between rows included

  /// Another camera than that of the options, from the next picture on; it may be free or follow a
  /// body. Throws std::invalid_argument when the model does not have it.
  void look_through(const mjvCamera& camera);
  /// Which geoms, sites, tendons and other things to draw; by default what dm_control draws.
  void show(const mjvOption& option);

  /// Takes over the state; the functions below without a state draw it, as often as they are
  /// called.
  void update(const mjModel& model, const mjData& data);
  void draw(std::span<std::uint8_t> out);
  void draw_depth(std::span<float> out);
  void draw_segmentation(std::span<std::int32_t> out);

  /// Row 0 is the top. Throws std::invalid_argument when `out` is not of bytes() bytes.
  void draw(const mjModel& model, const mjData& data, std::span<std::uint8_t> out);

  /// [height, width] metres from the camera's plane, at pixel centres; the far plane where nothing
  /// is. As dm_control's: MuJoCo's depth buffer, turned into metres. Transparent things do not
  /// count.
  void draw_depth(const mjModel& model, const mjData& data, std::span<float> out);

  /// [height, width, 2]: object id and mjtObj of what is seen at the pixel's centre; -1, -1 where
  /// nothing is. As dm_control's.
  void draw_segmentation(const mjModel& model, const mjData& data, std::span<std::int32_t> out);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::env

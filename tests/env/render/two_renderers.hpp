#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "env/compiled_model.hpp"
#include "env/physics.hpp"
#include "env/render/likeness.hpp"
#include "env/render/opengl_renderer.hpp"

namespace troupe::env {

/// What a renderer draws of one state.
struct Seen {
  std::vector<std::uint8_t> rgb; // [height, width, 3]
  std::vector<float> metres;
  std::vector<std::int32_t> objects;
};

inline Seen look(Renderer& renderer) {
  Seen seen{std::vector<std::uint8_t>(renderer.bytes()), std::vector<float>(renderer.pixels()),
            std::vector<std::int32_t>(2 * renderer.pixels())};
  renderer.draw(seen.rgb);
  renderer.draw_depth(seen.metres);
  renderer.draw_segmentation(seen.objects);
  return seen;
}

constexpr int kSide = 96; // pixels

/// A scene of a few lines of XML, drawn by the caster and by OpenGL with finely tessellated round
/// shapes. OpenGL's depth and segmentation are sampled at pixel centres, like the caster's.
class TwoRenderers {
public:
  explicit TwoRenderers(const std::string& xml, const std::string& camera = "0", bool fog = false)
      : physics_(compile_model("scene", xml)) {
    physics_.reset();
    const PixelOptions opengl{.height = kSide,
                              .width = kSide,
                              .camera = camera,
                              .fog = fog,
                              .renderer = RendererKind::opengl};
    PixelOptions caster = opengl;
    caster.renderer = RendererKind::caster;
    constexpr auto kLayout = PixelLayout::channels_last;
    OpenglRenderer smoothed(physics_, opengl, kLayout, {.slices = 200});
    theirs = look(smoothed);
    OpenglRenderer centred(physics_, opengl, kLayout, {.slices = 200, .multisampling = false});
    const Seen exact = look(centred);
    theirs.metres = exact.metres;
    theirs.objects = exact.objects;
    ours = look(*make_renderer(physics_, caster, kLayout));
  }

  double difference() const { return mean_absolute_difference(ours.rgb, theirs.rgb); }
  double similarity() const {
    return structural_similarity(theirs.rgb, ours.rgb, {kSide, kSide, 3});
  }

  /// Share of colours away from edges that differ by more than `levels`.
  double share_off(int levels) const {
    std::size_t inner = 0;
    std::size_t off = 0;
    for (int y = 1; y + 1 < kSide; ++y)
      for (int x = 1; x + 1 < kSide; ++x) {
        if (!is_inner(y, x))
          continue;
        const auto at = static_cast<std::size_t>(y * kSide + x) * 3;
        for (std::size_t c = 0; c < 3; ++c) {
          ++inner;
          off += std::abs(static_cast<int>(ours.rgb[at + c]) - static_cast<int>(theirs.rgb[at + c]))
                         > levels
                     ? 1
                     : 0;
        }
      }
    return inner == 0 ? 0 : static_cast<double>(off) / static_cast<double>(inner);
  }

  ShapeLikeness shapes() const {
    return compare_shapes(theirs.metres, ours.metres, theirs.objects, ours.objects, kSide, kSide);
  }

  Seen ours;
  Seen theirs;

private:
  bool is_inner(int y, int x) const {
    const auto object = [this](int v, int u) {
      const auto at = 2 * static_cast<std::size_t>(v * kSide + u);
      return std::pair(theirs.objects[at], theirs.objects[at + 1]);
    };
    for (int v = y - 1; v <= y + 1; ++v)
      for (int u = x - 1; u <= x + 1; ++u)
        if (object(v, u) != object(y, x))
          return false;
    return true;
  }

  Physics physics_;
};

} // namespace troupe::env

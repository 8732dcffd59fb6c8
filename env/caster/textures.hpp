#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <vector>

namespace troupe::env::caster {

inline constexpr int kMaxTextureLevels = 16; // up to 32768 texels per side

/// A texture and its mipmap levels, ready for lookups. Each level has half the size of the previous
/// one, rounded down, as in OpenGL. Immutable.
///
/// Level l of a 2-D texture is [height[l], width[l]] texels, starting at offset[l]. A level of a
/// cube texture is six faces (+x -x +y -y +z -z) of [width[l] + 2, width[l] + 2] texels: a border
/// of one texel repeats the adjacent faces, so that filtering works across edges.
///
/// A texel is red | green << 8 | blue << 16 | 255 << 24. With `two_colours` it holds four weights
/// of colours[1] (0 to 255), which is all that bilinear filtering needs: this texel's, the next
/// column's << 8, the next row's << 16, and that of the next column and row << 24.
struct TextureView {
  bool cube = false;
  bool two_colours = false;
  int levels = 0; // 0 if it cannot be drawn: no pixels, or a number of channels that OpenGL lacks
  std::array<std::int32_t, kMaxTextureLevels> offset{};
  std::array<std::int32_t, kMaxTextureLevels> width{};
  std::array<std::int32_t, kMaxTextureLevels> height{};
  std::array<float, kMaxTextureLevels> width_texels{}; // `width` as floats
  std::array<float, kMaxTextureLevels> height_texels{};
  std::array<std::array<float, 3>, 2> colours{}; // 0 to 1
  const std::int32_t* first_texel = nullptr;
};

/// A texture with its texels.
struct Texture : TextureView {
  std::vector<std::int32_t> texels; // first_texel points here once the texture is made

  Texture() = default;
  Texture(const Texture& other) : TextureView(other), texels(other.texels) {
    first_texel = texels.data();
  }
  Texture(Texture&&) noexcept = default; // moving does not move the texels
  Texture& operator=(Texture&&) noexcept = default;
};

/// Makes the textures of `model`, in its order. Throws std::invalid_argument for sizes above 32768.
std::vector<Texture> make_textures(const mjModel& model);

/// Returns the index of the sky's texture, the first one of type skybox, or -1 if there is none.
int find_sky(const mjModel& model);

/// How to get texture coordinates from a point in the shape's frame (in metres).
enum class TextureLayout : std::int32_t {
  none,
  planar,   // u and v are linear in x and y: infinite planes, height fields, meshes without uv
  box,      // one copy on each face; also for finite planes
  sphere,   // longitude and latitude; also for ellipsoids
  capsule,  // longitude, and latitude or height: one copy on the tube, one on each cap
  cylinder, // longitude and height; the caps are projected along the axis
  given,    // the mesh or skin has its own coordinates
  cube,     // the direction from the centre selects the texel
  cube_capsule
};

struct TextureMapping {
  TextureLayout layout = TextureLayout::none;
  std::int32_t texture = -1;
  std::array<float, 2> scale{1, 1};           // of u and v; planar: per metre
  std::array<float, 3> inverse_size{1, 1, 1}; // 1 / the shape's size, 1/metres
  std::array<float, 3> cube_scale{1, 1, 1};
};

/// Returns the mapping that MuJoCo uses for `geom` in the list of mjv_updateScene.
TextureMapping map_texture(const mjvGeom& geom, const std::vector<Texture>& textures);

} // namespace troupe::env::caster

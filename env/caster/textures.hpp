#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <vector>

namespace troupe::env::caster {

inline constexpr int kMaxTextureLevels = 16; // up to 32768 texels a side

/// A texture for lookups, with all its smaller copies ("levels": each half the size of the one
/// before, rounded down, as OpenGL's mip maps). Immutable.
///
/// Level l of a 2-D texture is [height[l], width[l]] texels from offset[l] on. A cube texture's
/// level is six faces (+x -x +y -y +z -z) of [width[l] + 2, width[l] + 2] texels: a border of one
/// texel repeats what lies around the corner, so that filtering crosses edges.
/// A texel is red | green << 8 | blue << 16 | alpha << 24; with `two_colours` it is the weight of
/// colours[1] (0 to 255) of this texel | of the next column's << 8 | of the next row's << 16 | of
/// both << 24, which is all that bilinear filtering needs.
struct TextureView {
  bool cube = false;
  bool two_colours = false;
  int levels = 0; // 0: cannot be drawn (no pixels, or a number of channels that OpenGL lacks)
  std::array<std::int32_t, kMaxTextureLevels> offset{};
  std::array<std::int32_t, kMaxTextureLevels> width{};
  std::array<std::int32_t, kMaxTextureLevels> height{};
  std::array<float, kMaxTextureLevels> width_texels{}; // the same as numbers to calculate with
  std::array<float, kMaxTextureLevels> height_texels{};
  std::array<std::array<float, 4>, 2> colours{}; // 0 to 1
  const std::int32_t* first_texel = nullptr;
};

/// A texture with its texels.
struct Texture : TextureView {
  std::vector<std::int32_t> texels; // where first_texel is, once made

  Texture() = default;
  Texture(const Texture& other) : TextureView(other), texels(other.texels) {
    first_texel = texels.data();
  }
  Texture(Texture&&) noexcept = default; // the texels stay where they are
  Texture& operator=(Texture&&) noexcept = default;
};

/// Textures of `model`, in its order. Throws std::invalid_argument for sizes beyond 32768.
std::vector<Texture> make_textures(const mjModel& model);

/// Number of the texture that is the sky: the first of type skybox; -1: none.
int find_sky(const mjModel& model);

/// The mapping of a texture to a shape: from a point in the shape's frame (metres) to texture
/// coordinates.
enum class TextureLayout : std::int32_t {
  none,
  planar,   // u and v are linear in x and y: infinite planes, height fields, meshes without uv
  box,      // one copy on each face; finite planes, too
  sphere,   // longitude and latitude; ellipsoids, too
  capsule,  // longitude; latitude or height: one copy on the tube, one on each cap
  cylinder, // longitude and height; caps from above
  given,    // the mesh or skin has coordinates of its own
  cube,     // from the middle outward
  cube_capsule
};

struct TextureMapping {
  TextureLayout layout = TextureLayout::none;
  std::int32_t texture = -1;
  std::array<float, 2> scale{1, 1};           // of u and v; planar: per metre
  std::array<float, 3> inverse_size{1, 1, 1}; // of the shape, 1/metres
  std::array<float, 3> cube_scale{1, 1, 1};
};

/// The mapping of what mjv_updateScene lists as `geom`. `has_coordinates`: the mesh or skin has
/// texture coordinates.
TextureMapping map_texture(const mjvGeom& geom, const std::vector<Texture>& textures);

} // namespace troupe::env::caster

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "env/caster/height_field.hpp"
#include "env/caster/mesh.hpp"
#include "env/caster/textures.hpp"

/// The caster's functions for triangles, height fields and textures, on arrays, compiled for every
/// instruction set that this processor supports.
namespace troupe::env::caster::test {

/// Any number of rays.
struct Rays {
  std::vector<std::array<float, 3>> from;
  std::vector<std::array<float, 3>> along;
};

struct Hit {
  float t = -1; // -1: no hit
  std::int32_t triangle = -1;
  std::array<float, 3> normal{};
  std::array<float, 2> uv{};
  bool between = false; // whether anything, on either side, is hit at 0 < t < 1
  bool operator==(const Hit&) const = default;
};

std::vector<std::int64_t> targets(); // Highway's targets that this processor supports
/// Selects one of targets() for all later calls; 0 selects the best.
void use_target(std::int64_t target);

std::vector<Hit> cast_mesh(const MeshView& mesh, const Rays& rays);
std::vector<Hit> cast_field(const HeightFieldView& field, const Rays& rays);
/// The same in scalar code, one ray at a time.
std::vector<Hit> cast_mesh_singly(const MeshView& mesh, const Rays& rays);
std::vector<Hit> cast_field_singly(const HeightFieldView& field, const Rays& rays);

/// Colours (0 to 1) at points (u, v, level) of a flat texture, or (x, y, z, level) of a
/// cube texture.
std::vector<std::array<float, 3>> sample(const Texture& texture,
                                         const std::vector<std::array<float, 4>>& places);

} // namespace troupe::env::caster::test

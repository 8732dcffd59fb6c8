#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "env/caster/height_field.hpp"
#include "env/caster/mesh.hpp"
#include "env/caster/textures.hpp"

/// The caster's parts for triangles, grids and textures, on arrays, with the vectors of any
/// instruction set that this processor has.
namespace troupe::env::caster::test {

/// Rays one after another, as many as a packet may have times some number.
struct Rays {
  std::vector<std::array<float, 3>> from;
  std::vector<std::array<float, 3>> along;
};

struct Hit {
  float t = -1; // -1: none
  std::int32_t triangle = -1;
  std::array<float, 3> normal{};
  std::array<float, 2> uv{};
  bool between = false; // something, either side, with 0 < t < 1
  bool operator==(const Hit&) const = default;
};

std::vector<std::int64_t> targets(); // of Highway, that this processor runs
/// One of targets() from now on; 0: the best.
void use_target(std::int64_t target);

std::vector<Hit> cast_mesh(const MeshView& mesh, const Rays& rays);
std::vector<Hit> cast_field(const HeightFieldView& field, const Rays& rays);
/// The same, one ray after another by plain floats.
std::vector<Hit> cast_mesh_singly(const MeshView& mesh, const Rays& rays);
std::vector<Hit> cast_field_singly(const HeightFieldView& field, const Rays& rays);

/// Colour and alpha (0 to 1) at places (u, v, level) of a flat texture, or (x, y, z, level) of a
/// cube.
std::vector<std::array<float, 4>> sample(const Texture& texture,
                                         const std::vector<std::array<float, 4>>& places);

} // namespace troupe::env::caster::test

#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "env/caster/frame.hpp"

namespace troupe::env::caster {

/// A geom that rays can hit. Lengths are in metres.
struct Solid {
  ShapeKind kind = ShapeKind::sphere;
  std::int32_t geom = -1;
  std::array<float, 3> size{};     // 0 in a plane means infinite
  std::array<float, 9> rotation{}; // from the local to the world frame, row-major
  std::array<double, 3> place{};   // position in the world frame
  std::array<float, 3> position{}; // position relative to the origin of the rays' coordinates
  std::array<float, 3> centre{};   // centre of its bounding sphere, relative to `position`
  float radius = 0;                // radius of its bounding sphere; not used for planes
  MeshView mesh;
  const HeightFieldView* field = nullptr;
};

/// Rays and their results. `rays` is [6][pitch]: x, y and z of the ray origins, then of the
/// directions. Its coordinates have the same origin as the solids' positions. `pitch` is a multiple
/// of kMostLanes. `distances` and `geoms` are [pitch].
struct SolidRays {
  const float* rays = nullptr;
  std::size_t pitch = 0;
  float cutoff = 0;
  float* distances = nullptr;
  std::int32_t* geoms = nullptr;
};

inline constexpr std::size_t kMostLanes = 16;

/// Solids and their bounding spheres. `balls` is [4][pitch]: x, y, z and radius. The radius is
/// kEndless for planes and -1 after the last solid.
struct SolidSet {
  std::span<const Solid> solids;
  const float* balls = nullptr;
  std::size_t pitch = 0; // a multiple of kMostLanes

  static constexpr float kEndless = 1e30F;
};

/// Finds where each ray first hits a solid within the cutoff; distance and geom are -1 if it hits
/// none. Uses the best instruction set of this processor.
void meet_solids(const SolidSet& set, const SolidRays& rays);

} // namespace troupe::env::caster

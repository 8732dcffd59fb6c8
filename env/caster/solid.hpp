#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "env/caster/frame.hpp"

namespace troupe::env::caster {

/// A geom as rays meet it. Lengths in metres.
struct Solid {
  ShapeKind kind = ShapeKind::sphere;
  std::int32_t geom = -1;
  std::array<float, 3> size{};     // of a plane: 0 is without end
  std::array<float, 9> rotation{}; // world from local, row major
  std::array<double, 3> place{};   // in the world
  std::array<float, 3> position{}; // the same from where the rays' coordinates begin
  std::array<float, 3> centre{};   // of a ball around it, from `position`
  float radius = 0;                // of that; planes have none
  MeshView mesh;
  const HeightFieldView* field = nullptr;
};

/// `rays` is [6][pitch]: x, y and z of the origins, then of the directions, from where the solids'
/// positions begin; `pitch` is a multiple of kMostLanes. Distances and geoms are [pitch].
struct SolidRays {
  const float* rays = nullptr;
  std::size_t pitch = 0;
  float cutoff = 0;
  float* distances = nullptr;
  std::int32_t* geoms = nullptr;
};

inline constexpr std::size_t kMostLanes = 16;

/// Solids, and the balls around them as [4][pitch]: x, y, z and radius; kEndless of planes, -1
/// beyond the last solid.
struct SolidSet {
  std::span<const Solid> solids;
  const float* balls = nullptr;
  std::size_t pitch = 0; // a multiple of kMostLanes

  static constexpr float kEndless = 1e30F;
};

/// Where each ray first meets a solid before the cutoff; -1 and -1 where it meets none. With the
/// best instruction set of this processor.
void meet_solids(const SolidSet& set, const SolidRays& rays);

} // namespace troupe::env::caster

#include "tests/env/caster/shapes_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/env/caster/shapes_kernels.cpp"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which includes it once for each instruction set.
#include "env/caster/kernels/height_field-inl.hpp"
#include "env/caster/kernels/mesh-inl.hpp"
#include "env/caster/kernels/texture-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {
namespace {

using test::Hit;
using test::Rays;

constexpr float kFarthest = 1e8F;

template <class R>
Vec3<R> load_three(const std::vector<std::array<float, 3>>& from, std::size_t first) {
  alignas(64) float lines[3][kLanes<R>];
  for (std::size_t i = 0; i < kLanes<R>; ++i)
    for (std::size_t k = 0; k < 3; ++k)
      lines[k][i] = from[std::min(first + i, from.size() - 1)][k];
  return {load<R>(lines[0]), load<R>(lines[1]), load<R>(lines[2])};
}

template <class R, class Keep>
void spread(R value, Keep&& keep) {
  alignas(64) float lanes[kLanes<R>];
  store(value, lanes);
  for (std::size_t i = 0; i < kLanes<R>; ++i)
    keep(i, lanes[i]);
}

template <class R, class Cast>
std::vector<Hit> cast_all(const Rays& rays, Cast&& cast) {
  std::vector<Hit> hits(rays.from.size() + 16);
  for (std::size_t first = 0; first < rays.from.size(); first += kLanes<R>) {
    const Vec3<R> o = load_three<R>(rays.from, first);
    const Vec3<R> d = load_three<R>(rays.along, first);
    cast(o, d, hits.data() + first);
  }
  hits.resize(rays.from.size());
  return hits;
}

template <class R>
std::vector<Hit> mesh_hits(const MeshView& mesh, const Rays& rays) {
  return cast_all<R>(rays, [&](const Vec3<R>& o, const Vec3<R>& d, Hit* out) HWY_ATTR {
    const R zero(0.0F);
    const MaskOf<R> everywhere = zero == zero;
    MeshHit<R> hit = no_mesh_hit(R(kFarthest));
    intersect_mesh(mesh, o, d, zero, everywhere, hit);
    const std::uint32_t between = bits(mesh_between(mesh, o, d, zero, R(1.0F), everywhere));
    spread<R>(hit.t, [&](std::size_t i, float t) {
      out[i].t = t < kFarthest ? t : -1;
      out[i].between = (between >> i & 1) != 0;
    });
    spread<R>(to_real(hit.triangle), [&](std::size_t i, float number) {
      out[i].triangle = static_cast<std::int32_t>(number);
    });
    if (mesh.nodes == nullptr)
      return;
    const MeshSurface<R> surface = mesh_surface(mesh, hit);
    const auto keep = [&](R value, auto&& place) {
      spread<R>(value, [&](std::size_t i, float number) {
        if (out[i].triangle >= 0)
          place(out[i]) = number;
      });
    };
    keep(surface.normal.x, [](Hit& h) -> float& { return h.normal[0]; });
    keep(surface.normal.y, [](Hit& h) -> float& { return h.normal[1]; });
    keep(surface.normal.z, [](Hit& h) -> float& { return h.normal[2]; });
    keep(surface.u, [](Hit& h) -> float& { return h.uv[0]; });
    keep(surface.v, [](Hit& h) -> float& { return h.uv[1]; });
  });
}

template <class R>
std::vector<Hit> field_hits(const HeightFieldView& field, const Rays& rays) {
  return cast_all<R>(rays, [&](const Vec3<R>& o, const Vec3<R>& d, Hit* out) HWY_ATTR {
    const R zero(0.0F);
    const MaskOf<R> everywhere = zero == zero;
    FieldHit<R> hit{R(kFarthest), {zero, zero, zero}};
    intersect_field(field, o, d, zero, everywhere, hit);
    const std::uint32_t between = bits(field_between(field, o, d, zero, R(1.0F), everywhere));
    spread<R>(hit.t, [&](std::size_t i, float t) {
      out[i].t = t < kFarthest ? t : -1;
      out[i].between = (between >> i & 1) != 0;
    });
    spread<R>(hit.normal.x, [&](std::size_t i, float number) { out[i].normal[0] = number; });
    spread<R>(hit.normal.y, [&](std::size_t i, float number) { out[i].normal[1] = number; });
    spread<R>(hit.normal.z, [&](std::size_t i, float number) { out[i].normal[2] = number; });
  });
}

std::vector<Hit> mesh_of_lanes(const MeshView& mesh, const Rays& rays) {
  return mesh_hits<Real>(mesh, rays);
}
std::vector<Hit> mesh_of_floats(const MeshView& mesh, const Rays& rays) {
  return mesh_hits<float>(mesh, rays);
}
std::vector<Hit> field_of_lanes(const HeightFieldView& field, const Rays& rays) {
  return field_hits<Real>(field, rays);
}
std::vector<Hit> field_of_floats(const HeightFieldView& field, const Rays& rays) {
  return field_hits<float>(field, rays);
}

std::vector<std::array<float, 3>> sample_places(const Texture& texture,
                                                const std::vector<std::array<float, 4>>& places) {
  std::vector<std::array<float, 3>> colours(places.size() + 16);
  for (std::size_t first = 0; first < places.size(); first += kLanes<Real>) {
    alignas(64) float lines[4][kLanes<Real>];
    for (std::size_t i = 0; i < kLanes<Real>; ++i)
      for (std::size_t k = 0; k < 4; ++k)
        lines[k][i] = places[std::min(first + i, places.size() - 1)][k];
    const Real a = load<Real>(lines[0]);
    const Real b = load<Real>(lines[1]);
    const Real c = load<Real>(lines[2]);
    const Vec3<Real> texel = texture.cube
                                 ? sample_cube(texture, Vec3<Real>{a, b, c}, load<Real>(lines[3]))
                                 : sample_flat(texture, a, b, c);
    spread<Real>(texel.x, [&](std::size_t i, float x) { colours[first + i][0] = x; });
    spread<Real>(texel.y, [&](std::size_t i, float x) { colours[first + i][1] = x; });
    spread<Real>(texel.z, [&](std::size_t i, float x) { colours[first + i][2] = x; });
  }
  colours.resize(places.size());
  return colours;
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::env::caster {

HWY_EXPORT(mesh_of_lanes);
HWY_EXPORT(mesh_of_floats);
HWY_EXPORT(field_of_lanes);
HWY_EXPORT(field_of_floats);
HWY_EXPORT(sample_places);

namespace test {

std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> found;
  const auto supported = static_cast<std::uint64_t>(hwy::SupportedTargets() & HWY_TARGETS);
  for (std::uint64_t left = supported; left != 0; left &= left - 1)
    found.push_back(static_cast<std::int64_t>(left & (~left + 1)));
  return found;
}

void use_target(std::int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

std::vector<Hit> cast_mesh(const MeshView& mesh, const Rays& rays) {
  return HWY_DYNAMIC_DISPATCH(mesh_of_lanes)(mesh, rays);
}
std::vector<Hit> cast_mesh_singly(const MeshView& mesh, const Rays& rays) {
  return HWY_DYNAMIC_DISPATCH(mesh_of_floats)(mesh, rays);
}
std::vector<Hit> cast_field(const HeightFieldView& field, const Rays& rays) {
  return HWY_DYNAMIC_DISPATCH(field_of_lanes)(field, rays);
}
std::vector<Hit> cast_field_singly(const HeightFieldView& field, const Rays& rays) {
  return HWY_DYNAMIC_DISPATCH(field_of_floats)(field, rays);
}
std::vector<std::array<float, 3>> sample(const Texture& texture,
                                         const std::vector<std::array<float, 4>>& places) {
  return HWY_DYNAMIC_DISPATCH(sample_places)(texture, places);
}

} // namespace test
} // namespace troupe::env::caster
#endif

// Prepares a picture before its pixels: the sky, and the vertices of planes under spot lights.
#if defined(TROUPE_ENV_CASTER_PREPARE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_PREPARE_INL_HPP_
#undef TROUPE_ENV_CASTER_PREPARE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_PREPARE_INL_HPP_
#endif

#include <algorithm>
#include <cmath>

#include "env/caster/kernels/pixel-inl.hpp"
#include "env/caster/picture.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

inline std::array<float, 19> sky_numbers(const Frame& frame) {
  const Camera& camera = frame.camera;
  std::array<float, 19> numbers{};
  std::copy_n(camera.right.data(), 3, numbers.data());
  std::copy_n(camera.up.data(), 3, numbers.data() + 3);
  std::copy_n(camera.forward.data(), 3, numbers.data() + 6);
  numbers[9] = camera.u0;
  numbers[10] = camera.v0;
  numbers[11] = camera.du;
  numbers[12] = camera.dv;
  if (frame.fog.thick) {
    std::copy_n(frame.fog.colour.data(), 3, numbers.data() + 13);
    numbers[16] = frame.fog.end;
    numbers[17] = frame.fog.inverse_range;
    numbers[18] = camera.far;
  }
  return numbers;
}

/// Draws the sky at all pixels. The result is kept while the camera does not turn.
template <bool kOrthographic>
void draw_sky(const Frame& frame, Picture& picture) {
  const std::array<float, 19> now = sky_numbers(frame);
  if (frame.sky == nullptr || (picture.sky_known && now == picture.sky_numbers))
    return;
  const Shader<kOrthographic> shader{frame};
  for (int y = 0; y < frame.block_rows * kBlockSide; ++y)
    for (int x = 0; x < frame.block_columns * kBlockSide; x += kLanes<Real>) {
      const Real column = to_real(lane_numbers<Real>() + Integer(x));
      const Real row(static_cast<float>(y));
      store(sky_colour<Real>(shader, column, row),
            picture.sky.data() + picture.at(x, y)); // the margin has room for a vector
    }
  picture.sky_numbers = now;
  picture.sky_known = true;
}

/// Finds the bounds along x and y of a spot light's cone on the plane z = 0. Returns false if a
/// part of the cone does not meet the plane.
inline bool cone_footprint(const Light& light, const LocalLight& local, float low[2],
                           float high[2]) {
  const float* axis = local.axis.data();
  const float least = std::abs(axis[0]) < .7F ? 1.0F : 0.0F;
  float side[3] = {0, -axis[2], axis[1]}; // the cross product of axis and (1, 0, 0) or (0, 1, 0)
  if (least == 0.0F) {
    side[0] = axis[2];
    side[1] = 0;
    side[2] = -axis[0];
  }
  const float norm = std::sqrt(side[0] * side[0] + side[1] * side[1] + side[2] * side[2]);
  for (float& part : side)
    part /= norm;
  const float other[3] = {axis[1] * side[2] - axis[2] * side[1],
                          axis[2] * side[0] - axis[0] * side[2],
                          axis[0] * side[1] - axis[1] * side[0]};
  const float sine = std::sqrt(std::max(0.0F, 1 - light.cos_cutoff * light.cos_cutoff));
  constexpr int kRim = 24;
  for (int k = 0; k < 2; ++k) {
    low[k] = 1e30F;
    high[k] = -1e30F;
  }
  for (int i = 0; i < kRim; ++i) {
    const float angle = 6.2831853F * static_cast<float>(i) / kRim;
    const float a = 1.01F * sine * std::cos(angle); // the margin covers the arc between two points
    const float b = 1.01F * sine * std::sin(angle);
    float d[3];
    for (int k = 0; k < 3; ++k)
      d[k] = axis[k] * light.cos_cutoff + side[k] * a + other[k] * b;
    if (!(d[2] < -1e-3F))
      return false;
    const float t = -local.toward[2] / d[2];
    for (int k = 0; k < 2; ++k) {
      const float at = local.toward[static_cast<std::size_t>(k)] + t * d[k];
      low[k] = std::min(low[k], at);
      high[k] = std::max(high[k], at);
    }
  }
  return true;
}

/// The last line that is not to the right of x; at least 0.
inline int line_before(const PlaneAxis& axis, float x) {
  if (!(x > -axis.size + axis.pad))
    return 0;
  const float cell = std::floor((x + axis.size - axis.pad) / axis.step);
  return 1 + static_cast<int>(std::min(cell, static_cast<float>(axis.cells)));
}

/// Sets the window of lines around the cone. Returns false if it is too large for a table.
inline bool set_window(const Shape& plane, const float low[2], const float high[2],
                       LightTable& table) {
  constexpr int kMostVertices = 40000;
  for (std::size_t k = 0; k < 2; ++k) {
    const PlaneAxis& axis = plane.axes[k];
    table.first[k] = line_before(axis, low[k]);
    const int last = std::min(line_before(axis, high[k]) + 1, axis.cells + 2);
    table.count[k] = last - table.first[k] + 1;
    if (low[k] > axis.size || high[k] < -axis.size)
      table.count[k] = 0;
  }
  for (std::size_t k = 0; k < 2; ++k) {
    const float from = plane.axes[k].line(table.first[k]);
    const float to = plane.axes[k].line(table.first[k] + table.count[k] - 1);
    table.middle[k] = .5F * (from + to);
    table.half[k] = .5F * (to - from);
  }
  return table.count[0] * table.count[1] <= kMostVertices;
}

template <bool kOrthographic>
void fill_table(const Frame& frame, const Shape& plane, LightTable& table) {
  const auto l = static_cast<std::size_t>(table.light);
  const std::size_t size =
      static_cast<std::size_t>(table.count[0]) * static_cast<std::size_t>(table.count[1]);
  constexpr std::size_t kSpare = 16; // the last vector may be stored past the end
  for (auto* values : {&table.ambient, &table.diffuse, &table.specular})
    if (values->size() < size + kSpare)
      values->resize(size + kSpare);
  const Vec3<Real> eye = broadcast<Real>(plane.ray.origin.data());
  const Vec3<Real> backward = -broadcast<Real>(plane.ray.forward.data());
  const auto& strength = plane.lights[l].specular;
  // Less than half of one of 255 levels is invisible.
  const Real least(.5F / 255 / std::max({strength[0], strength[1], strength[2], 1e-6F}));
  Mask shines = no_lanes<Real>();
  for (int row = 0; row < table.count[1]; ++row)
    for (int column = 0; column < table.count[0]; column += kLanes<Real>) {
      alignas(64) float x[kLanes<Real>];
      for (int i = 0; i < kLanes<Real>; ++i)
        x[i] = plane.axes[0].line(table.first[0] + column + i);
      Surface<Real> surface;
      surface.point = {load<Real>(x), Real(plane.axes[1].line(table.first[1] + row)), Real(0.0F)};
      surface.normal = {Real(0.0F), Real(0.0F), Real(1.0F)};
      surface.view = kOrthographic ? backward : normalized(eye - surface.point);
      const Brightness<Real> b = brightness<true>(plane, frame.lights[l], plane.lights[l], surface);
      shines = shines | (b.specular > least);
      const std::size_t at =
          static_cast<std::size_t>(row) * static_cast<std::size_t>(table.count[0])
          + static_cast<std::size_t>(column);
      store(b.ambient, table.ambient.data() + at);
      store(b.diffuse, table.diffuse.data() + at);
      store(b.specular, table.specular.data() + at);
    }
  table.shines = any(shines);
}

/// MuJoCo lights planes at the vertices of a grid, which is visible where a spot light's cone is.
template <bool kOrthographic>
void make_tables(Frame& frame) {
  std::size_t used = 0;
  for (std::size_t s = 0; s < frame.shapes.size(); ++s) {
    Shape& plane = frame.shapes[s];
    if (plane.kind != ShapeKind::plane)
      continue;
    plane.first_table = static_cast<int>(used);
    used += frame.lights.size();
    if (frame.tables.size() < used)
      frame.tables.resize(used);
    for (std::size_t l = 0; l < frame.lights.size(); ++l) {
      LightTable& table = frame.tables[static_cast<std::size_t>(plane.first_table) + l];
      table.light = -1;
      const Light& light = frame.lights[l];
      float low[2];
      float high[2];
      if (!light.spot || !(plane.lights[l].toward[2] > 0)
          || !cone_footprint(light, plane.lights[l], low, high)
          || !set_window(plane, low, high, table))
        continue;
      table.light = static_cast<int>(l);
      fill_table<kOrthographic>(frame, plane, table);
    }
  }
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif

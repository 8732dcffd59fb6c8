#include "env/caster/ray_query.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "env/caster/caster_model.hpp"
#include "env/caster/float3.hpp"
#include "env/caster/shape_builder.hpp"

namespace troupe::env {
namespace {

using caster::Float3;
using caster::ShapeKind;
using caster::Solid;
using caster::operator+;
using caster::operator-;
using caster::operator*;

using caster::kMostLanes;

/// Whether mj_ray would skip the geom.
bool eliminated(const mjModel& model, int geom, const RayQueryOptions& options) {
  const int body = model.geom_bodyid[geom];
  const int material = model.geom_matid[geom];
  const float alpha =
      material < 0 ? model.geom_rgba[4 * geom + 3] : model.mat_rgba[4 * material + 3];
  if (body == options.exclude_body || alpha == 0
      || (!options.statics && model.body_weldid[body] == 0))
    return true;
  const int group = std::clamp(model.geom_group[geom], 0, mjNGROUP - 1);
  return !options.groups[static_cast<std::size_t>(group)];
}

/// Sets the bounding sphere to that of a box in the solid's frame.
void set_ball(const Float3& low, const Float3& high, Solid& solid) {
  solid.centre = caster::outward(solid.rotation, (low + high) * .5F); // relative to its position
  solid.radius = .5F * caster::length(high - low);
}

void set_formula(const mjtNum* given, Solid& solid) {
  const Float3 size = {static_cast<float>(given[0]), static_cast<float>(given[1]),
                       static_cast<float>(given[2])};
  solid.size = size;
  solid.radius = solid.kind == ShapeKind::sphere      ? size[0]
                 : solid.kind == ShapeKind::capsule   ? size[0] + size[1]
                 : solid.kind == ShapeKind::cylinder  ? std::hypot(size[0], size[1])
                 : solid.kind == ShapeKind::ellipsoid ? *std::max_element(size.begin(), size.end())
                                                      : caster::length(size);
}

} // namespace

RayQuery::RayQuery(std::shared_ptr<const CasterModel> model) : shared_(std::move(model)) {
  if (!shared_)
    throw std::invalid_argument("a RayQuery needs a CasterModel, but got none");
  for (int i = 0; i < shared_->model().nhfield; ++i)
    fields_.emplace_back(shared_->model(), i);
}

void RayQuery::update(const mjModel& model, const mjData& data, const RayQueryOptions& options) {
  if (options.exclude_body < -1 || options.exclude_body >= model.nbody)
    throw std::invalid_argument("exclude_body is " + std::to_string(options.exclude_body)
                                + "; it must be from 0 to " + std::to_string(model.nbody - 1)
                                + ", or -1 for none");
  if (!(options.cutoff > 0))
    throw std::invalid_argument("cutoff is " + std::to_string(options.cutoff)
                                + "; it must be more than 0");
  cutoff_ = options.cutoff;
  for (caster::HeightField& field : fields_)
    field.update(model);
  solids_.clear();
  for (int geom = 0; geom < model.ngeom; ++geom) {
    const mjtNum* position = data.geom_xpos + 3 * geom;
    const mjtNum* rotation = data.geom_xmat + 9 * geom;
    const std::optional<ShapeKind> kind = caster::shape_kind(model.geom_type[geom]);
    if (!kind || eliminated(model, geom, options) || !caster::all_finite(position, 3)
        || !caster::all_finite(rotation, 9))
      continue;
    Solid solid;
    solid.kind = *kind;
    solid.geom = geom;
    std::copy_n(rotation, 9, solid.rotation.begin());
    std::copy_n(position, 3, solid.place.begin());
    const int number = model.geom_dataid[geom];
    if (solid.kind == ShapeKind::mesh) {
      solid.mesh = shared_->meshes().view(number);
      if (solid.mesh.nodes == nullptr)
        continue;
      set_ball(caster::float3(solid.mesh.nodes[0].low), caster::float3(solid.mesh.nodes[0].high),
               solid);
    } else if (solid.kind == ShapeKind::height_field) {
      const caster::HeightField& field = fields_[static_cast<std::size_t>(number)];
      solid.field = &field.view();
      if (solid.field->heights == nullptr)
        continue;
      const auto& [x, y] = solid.field->size;
      const float bottom = -solid.field->bottom;
      set_ball({-x, -y, bottom}, {x, y, std::max(field.highest(), bottom)}, solid);
    } else {
      set_formula(model.geom_size + 3 * geom, solid);
    }
    solids_.push_back(solid);
  }
}

void RayQuery::cast(std::span<const double> origins, std::span<const double> directions,
                    std::span<float> distances, std::span<std::int32_t> geoms) {
  const std::size_t count = distances.size();
  const bool common = origins.size() == 3;
  if ((origins.size() != 3 * count && !common) || directions.size() != 3 * count
      || geoms.size() != count)
    throw std::invalid_argument(
        "rays have " + std::to_string(origins.size()) + " numbers of origins, "
        + std::to_string(directions.size()) + " of directions, " + std::to_string(count)
        + " distances and " + std::to_string(geoms.size())
        + " geoms; each ray needs 3, 3, 1 and 1, or all rays share one origin of 3");
  // Coordinates are relative to the first origin, so that single precision is finest near a sensor.
  std::array<double, 3> begin{};
  if (count > 0 && caster::all_finite(origins.data(), 3))
    std::copy_n(origins.begin(), 3, begin.begin());
  const caster::SolidSet set = solids_from(begin);
  // A few packets at a time, so that their data stays in the first-level cache.
  constexpr std::size_t kBatch = 16 * kMostLanes;
  rays_.assign(6 * kBatch, 0);
  std::array<float, kBatch> found;
  std::array<std::int32_t, kBatch> which;
  for (std::size_t first = 0; first < count; first += kBatch) {
    const std::size_t some = std::min(kBatch, count - first);
    for (std::size_t i = 0; i < kBatch; ++i)
      for (std::size_t k = 0; k < 3; ++k) {
        const std::size_t at = 3 * (first + i) + k;
        const bool there = i < some; // padding rays have no direction
        rays_[k * kBatch + i] =
            there ? static_cast<float>(origins[common ? k : at] - begin[k]) : 0.0F;
        rays_[(3 + k) * kBatch + i] = there ? static_cast<float>(directions[at]) : 0.0F;
      }
    caster::meet_solids(set, {.rays = rays_.data(),
                              .pitch = kBatch,
                              .cutoff = cutoff_,
                              .distances = found.data(),
                              .geoms = which.data()});
    std::copy_n(found.begin(), some, distances.begin() + static_cast<std::ptrdiff_t>(first));
    std::copy_n(which.begin(), some, geoms.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

caster::SolidSet RayQuery::solids_from(const std::array<double, 3>& begin) {
  const std::size_t pitch = (solids_.size() + kMostLanes - 1) / kMostLanes * kMostLanes;
  balls_.assign(4 * pitch, -1);
  for (std::size_t i = 0; i < solids_.size(); ++i) {
    Solid& solid = solids_[i];
    for (std::size_t k = 0; k < 3; ++k) {
      solid.position[k] = static_cast<float>(solid.place[k] - begin[k]);
      balls_[k * pitch + i] = solid.position[k] + solid.centre[k];
    }
    balls_[3 * pitch + i] =
        solid.kind == ShapeKind::plane ? caster::SolidSet::kEndless : solid.radius;
  }
  return {solids_, balls_.data(), pitch};
}

} // namespace troupe::env

#include "env/caster/skin.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace troupe::env::caster {

SkinModel::SkinModel(const mjModel& model, int number)
    : vertices_(model.skin_vertnum[number]), inflate_(model.skin_inflate[number]) {
  const auto count = static_cast<std::size_t>(vertices_);
  const int first_vertex = model.skin_vertadr[number];
  rest_.resize(4 * count);
  for (std::size_t i = 0; i < count; ++i)
    std::copy_n(model.skin_vert + 3 * (static_cast<std::size_t>(first_vertex) + i), 3,
                rest_.begin() + static_cast<std::ptrdiff_t>(4 * i));
  if (model.skin_texcoordadr[number] >= 0) {
    const float* from = model.skin_texcoord + 2 * model.skin_texcoordadr[number];
    coordinates_.assign(from, from + 2 * count);
  }

  std::vector<std::vector<Influence>> by_vertex(count);
  for (int j = 0; j < model.skin_bonenum[number]; ++j) {
    const int bone = model.skin_boneadr[number] + j;
    Bone& added = bones_.emplace_back();
    added.body = model.skin_bonebodyid[bone];
    if (added.body < 0 || added.body >= static_cast<int>(model.nbody))
      added.body = 0;
    std::copy_n(model.skin_bonebindpos + 3 * bone, 3, added.position);
    std::copy_n(model.skin_bonebindquat + 4 * bone, 4, added.quaternion);
    for (int k = 0; k < model.skin_bonevertnum[bone]; ++k) {
      const int at = model.skin_bonevertadr[bone] + k;
      const int vertex = model.skin_bonevertid[at];
      if (vertex >= 0 && vertex < vertices_)
        by_vertex[static_cast<std::size_t>(vertex)].push_back({j, model.skin_bonevertweight[at]});
    }
  }
  first_influence_.push_back(0);
  for (const auto& influences : by_vertex) {
    influences_.insert(influences_.end(), influences.begin(), influences.end());
    first_influence_.push_back(static_cast<std::int32_t>(influences_.size()));
  }

  const int* corners = model.skin_face + 3 * model.skin_faceadr[number];
  for (int face = 0; face < model.skin_facenum[number]; ++face) {
    const int* three = corners + 3 * face;
    if (std::all_of(three, three + 3, [&](int v) { return v >= 0 && v < vertices_; }))
      triangles_.push_back({{three[0], three[1], three[2]}, face});
  }
  nodes_ = build_bvh(triangles_, rest_);
  for (const BvhTriangle& triangle : triangles_)
    corners_.insert(corners_.end(),
                    {triangle.corner[0], triangle.corner[1], triangle.corner[2], 0});
}

Skin::Skin(std::shared_ptr<const SkinModel> model)
    : model_(std::move(model)),
      bones_(12 * model_->bones_.size()),
      vertices_(model_->rest_),
      normals_(model_->rest_.size()),
      nodes_(model_->nodes_) {}

void Skin::pose(const mjData& data) {
  move_vertices(data);
  make_normals();
  if (model_->inflate_ != 0)
    for (std::size_t i = 0; i < vertices_.size(); ++i)
      vertices_[i] += model_->inflate_ * normals_[i];
  refit_bvh(nodes_, model_->triangles_, vertices_);
}

void Skin::move_vertices(const mjData& data) {
  if (!model_->bones_.empty())
    for (std::size_t k = 0; k < 3; ++k)
      origin_[k] =
          static_cast<float>(data.xpos[3 * static_cast<std::size_t>(model_->bones_[0].body) + k]);
  for (std::size_t j = 0; j < model_->bones_.size(); ++j) {
    const SkinModel::Bone& bone = model_->bones_[j];
    const auto body = static_cast<std::size_t>(bone.body);
    const mjtNum back[4] = {bone.quaternion[0], -bone.quaternion[1], -bone.quaternion[2],
                            -bone.quaternion[3]};
    mjtNum turn[4];
    mjtNum rotation[9];
    mju_mulQuat(turn, data.xquat + 4 * body, back);
    mju_quat2Mat(rotation, turn);
    float* to = bones_.data() + 12 * j;
    for (std::size_t row = 0; row < 3; ++row) {
      mjtNum moved = data.xpos[3 * body + row] - static_cast<mjtNum>(origin_[row]);
      for (std::size_t column = 0; column < 3; ++column) {
        moved -= rotation[3 * row + column] * static_cast<mjtNum>(bone.position[column]);
        to[3 * column + row] = static_cast<float>(rotation[3 * row + column]);
      }
      to[9 + row] = static_cast<float>(moved);
    }
  }
  const auto count = static_cast<std::size_t>(model_->vertices_);
  for (std::size_t i = 0; i < count; ++i) {
    std::array<float, 12> mixed{};
    for (auto k = static_cast<std::size_t>(model_->first_influence_[i]);
         k < static_cast<std::size_t>(model_->first_influence_[i + 1]); ++k) {
      const SkinModel::Influence& influence = model_->influences_[k];
      const float* bone = bones_.data() + 12 * static_cast<std::size_t>(influence.bone);
      for (std::size_t n = 0; n < 12; ++n)
        mixed[n] += influence.weight * bone[n];
    }
    const float* rest = model_->rest_.data() + 4 * i;
    for (std::size_t row = 0; row < 3; ++row)
      vertices_[4 * i + row] = mixed[row] * rest[0] + mixed[3 + row] * rest[1]
                               + mixed[6 + row] * rest[2] + mixed[9 + row];
  }
}

void Skin::make_normals() {
  std::fill(normals_.begin(), normals_.end(), 0.0F);
  for (const BvhTriangle& triangle : model_->triangles_) {
    const auto at = [&](std::size_t k) { return 4 * static_cast<std::size_t>(triangle.corner[k]); };
    const float* a = vertices_.data() + at(0);
    const float* b = vertices_.data() + at(1);
    const float* c = vertices_.data() + at(2);
    const float p[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
    const float q[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
    const float n[3] = {p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2],
                        p[0] * q[1] - p[1] * q[0]};
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t i = 0; i < 3; ++i)
        normals_[at(k) + i] += n[i];
  }
  for (std::size_t i = 0; i < normals_.size(); i += 4) {
    float* n = normals_.data() + i;
    const float length = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    const float scale = 1 / std::max(length, 1e-15F);
    for (std::size_t k = 0; k < 3; ++k)
      n[k] *= scale;
  }
}

MeshView Skin::view() const {
  return view_of({nodes_, model_->triangles_, vertices_, normals_, model_->corners_,
                  model_->coordinates_, model_->corners_});
}

} // namespace troupe::env::caster

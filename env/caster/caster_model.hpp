#pragma once

#include <memory>
#include <vector>

#include "env/caster/mesh.hpp"
#include "env/caster/ray_caster.hpp"
#include "env/caster/skin.hpp"
#include "env/caster/textures.hpp"

namespace troupe::env {

class CasterModel {
public:
  explicit CasterModel(std::shared_ptr<const CompiledModel> compiled);

  const mjModel& model() const { return compiled_->get(); }
  const std::vector<caster::Texture>& textures() const { return textures_; }
  const caster::Texture* sky() const { return sky_; } // null if there is none
  const caster::Meshes& meshes() const { return meshes_; }
  const std::vector<std::shared_ptr<const caster::SkinModel>>& skins() const { return skins_; }

private:
  std::shared_ptr<const CompiledModel> compiled_;
  std::vector<caster::Texture> textures_;
  const caster::Texture* sky_ = nullptr;
  caster::Meshes meshes_;
  std::vector<std::shared_ptr<const caster::SkinModel>> skins_;
};

} // namespace troupe::env

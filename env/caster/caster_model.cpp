#include "env/caster/caster_model.hpp"

#include <map>
#include <mutex>
#include <stdexcept>

namespace troupe::env {

CasterModel::CasterModel(std::shared_ptr<const CompiledModel> compiled)
    : compiled_(std::move(compiled)), textures_(caster::make_textures(model())), meshes_(model()) {
  const int sky = caster::find_sky(model());
  if (sky >= 0 && textures_[static_cast<std::size_t>(sky)].levels > 0)
    sky_ = &textures_[static_cast<std::size_t>(sky)];
  for (int i = 0; i < static_cast<int>(model().nskin); ++i)
    skins_.push_back(std::make_shared<const caster::SkinModel>(model(), i));
}

std::shared_ptr<const CasterModel> caster_model(std::shared_ptr<const CompiledModel> compiled) {
  if (!compiled)
    throw std::invalid_argument("a CasterModel needs a compiled model, but got none");
  // The only global state: the table of live models, as in load_model().
  static std::mutex mutex;
  static std::map<const CompiledModel*, std::weak_ptr<const CasterModel>> alive;
  const std::lock_guard lock(mutex);
  std::erase_if(alive, [](const auto& entry) { return entry.second.expired(); });
  auto& known = alive[compiled.get()];
  if (auto present = known.lock())
    return present;
  auto made = std::make_shared<const CasterModel>(compiled);
  known = made;
  return made;
}

} // namespace troupe::env

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "env/caster/ray_caster.hpp"

namespace troupe::env {

class CasterModel {
public:
  explicit CasterModel(std::shared_ptr<const CompiledModel> compiled);

  const mjModel& model() const { return compiled_->get(); }

private:
  std::shared_ptr<const CompiledModel> compiled_;
};

} // namespace troupe::env

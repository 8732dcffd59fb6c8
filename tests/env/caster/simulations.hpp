#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "env/caster/ray_caster.hpp"
#include "env/make/make.hpp"
#include "env/physics.hpp"
#include "env/plugin/rollout.hpp"

namespace troupe::env::test {

/// Environments of one task, each in a different state.
class Simulations {
public:
  Simulations(const std::string& task, int count, int steps = 4) {
    for (int i = 0; i < count; ++i) {
      auto environment = make_task(task);
      std::vector<std::byte> observation(environment->spec().observation_bytes());
      const auto seed = static_cast<std::uint64_t>(i) + 1;
      environment->reset(seed, observation);
      for (int step = 0; step < steps; ++step)
        environment->step(action_for(environment->spec(), seed, step, Acting::random), observation);
      models_.push_back(&environment->physics()->model());
      states_.push_back(&environment->physics()->data());
      environments_.push_back(std::move(environment));
    }
  }

  std::shared_ptr<const CasterModel> caster_model() const {
    return env::caster_model(environments_[0]->physics()->compiled());
  }
  const std::vector<const mjModel*>& models() const { return models_; }
  const std::vector<const mjData*>& states() const { return states_; }

  /// The pictures drawn by RayCaster, one after another.
  std::vector<std::uint8_t> cast(const CastOptions& options) const {
    std::vector<std::uint8_t> all;
    RayCaster caster(caster_model(), options);
    std::vector<std::uint8_t> one(caster.bytes());
    for (std::size_t i = 0; i < states_.size(); ++i) {
      caster.draw(*models_[i], *states_[i], one);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

private:
  std::vector<std::unique_ptr<Environment>> environments_;
  std::vector<const mjModel*> models_;
  std::vector<const mjData*> states_;
};

/// Share of bytes that differ by more than `levels`.
inline double differing(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b,
                        int levels) {
  if (a.size() != b.size() || a.empty())
    return 1;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    count += static_cast<std::size_t>(std::abs(int{a[i]} - int{b[i]}) > levels);
  return static_cast<double>(count) / static_cast<double>(a.size());
}

} // namespace troupe::env::test

// Saved states of a pool. Between two episodes only the lasting state of an environment is saved,
// because the rest of the next episode depends only on its seed.
#include <stdexcept>

#include "env/pool/environment_pool.hpp"
#include "env/pool/pool_engine.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {

namespace {

void save_slot(std::vector<std::byte>& out, const PoolSlot& slot, const PoolEngine& engine) {
  const bool saves_state = engine.spec().saves_state;
  const PoolPhase phase =
      slot.phase == PoolPhase::playing && !saves_state ? PoolPhase::ended : slot.phase;
  save_value(out, slot.episode);
  save_value(out, static_cast<std::uint8_t>(slot.seed ? 1 : 0));
  save_value(out, slot.seed.value_or(0));
  save_value(out, slot.seeded_at);
  save_value(out, slot.steps);
  save_value(out, slot.episode_return);
  save_value(out, slot.failures);
  save_value(out, phase);
  save_array<char>(out, slot.error);
  if (phase != PoolPhase::playing && !engine.has_lasting_state())
    return;
  std::vector<std::byte> state;
  if (phase == PoolPhase::playing)
    slot.environment->save_state(state);
  else
    slot.environment->save_lasting_state(state);
  save_array<std::byte>(out, state);
}

void load_slot(std::span<const std::byte>& in, PoolSlot& slot, bool has_lasting_state) {
  slot.phase = PoolPhase::ended; // in case the code below throws
  PoolPhase phase{};
  load_value(in, slot.episode, "number of episodes");
  std::uint8_t seeded = 0;
  std::uint64_t seed = 0;
  load_value(in, seeded, "seed");
  load_value(in, seed, "seed");
  load_value(in, slot.seeded_at, "seed");
  slot.seed = seeded != 0 ? std::optional(seed) : std::nullopt;
  load_value(in, slot.steps, "step counter");
  load_value(in, slot.episode_return, "return");
  load_value(in, slot.failures, "failures");
  load_value(in, phase, "phase");
  if (phase > PoolPhase::out_of_service)
    throw std::invalid_argument("saved state of a pool has phase "
                                + std::to_string(static_cast<int>(phase))
                                + ", which does not exist: it is damaged");
  slot.error = load_text(in, "error text");
  if (phase == PoolPhase::playing || has_lasting_state) {
    const auto state = load_bytes(in, "environment");
    const auto rest = phase == PoolPhase::playing ? slot.environment->load_state(state)
                                                  : slot.environment->load_lasting_state(state);
    if (!rest.empty())
      throw std::invalid_argument("saved state of a pool has more bytes for an environment than it "
                                  "needs: it was saved with another configuration");
  }
  slot.status = phase == PoolPhase::out_of_service ? RowStatus::out_of_service : RowStatus::ok;
  slot.result = phase == PoolPhase::out_of_service ? TimeStep{StepType::last, 0, 1} : TimeStep{};
  slot.phase = phase;
}

} // namespace

void EnvironmentPool::save_state(std::vector<std::byte>& out) const {
  check_nothing_in_flight("save_state()");
  save_value(out, static_cast<std::uint64_t>(engine_->size()));
  for (std::size_t i = 0; i < engine_->size(); ++i)
    save_slot(out, engine_->slot(i), *engine_);
}

std::span<const std::byte> EnvironmentPool::load_state(std::span<const std::byte> in) {
  check_nothing_in_flight("load_state()");
  std::uint64_t count = 0;
  load_value(in, count, "number of environments");
  if (count != engine_->size())
    throw std::invalid_argument("saved state of a pool has " + std::to_string(count)
                                + " environments and this pool " + std::to_string(engine_->size())
                                + "; load it with as many as it was saved with");
  const HeldSpares held(*engine_); // spares hold episodes of the previous state
  for (std::size_t i = 0; i < engine_->size(); ++i) {
    load_slot(in, engine_->slot(i), engine_->has_lasting_state());
    out_of_service_[i] = engine_->slot(i).phase == PoolPhase::out_of_service ? 1 : 0;
  }
  return in;
}

} // namespace troupe::env

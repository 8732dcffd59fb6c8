#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "env/pool/environment_pool.hpp"
#include "replay/writer.hpp"

namespace troupe::replay {

/// The transitions of all environments of a pool, one TransitionWriter each. The pool writes every
/// observation straight to its place in the chunk. One thread.
///
///   PoolWriter writer(pool.spec(), pool.environments(), spec, 7);
///   pool.observe_in(writer.places());
///   pool.reset(all, batch, deadline); writer.append(actions, batch);
///   for (;;) { …; pool.step(actions, batch, deadline); writer.append(actions, batch);
///   writer.take(out); }
class PoolWriter {
public:
  /// Writers first_id, first_id + 1, …. Throws std::invalid_argument as TransitionWriter does, and
  /// where the environments' observations or actions are not the spec's.
  PoolWriter(const env::EnvironmentSpec& environment, int environments, const TransitionSpec& spec,
             std::uint64_t first_id, int chunk_steps = 0, const ItemPriority& priority = {});

  /// Where each environment's coming observation is to be written: the same span for ever, other
  /// pointers after append() for the environments that were in its batch.
  std::span<std::byte* const> places() const { return places_; }

  /// What a pool gave whose observations are at places(): the first time step of an episode, or the
  /// one after the action; actions[row] belongs to batch row `row`, [rows, action size]. The
  /// episode of an environment that failed ends without a last step. Throws std::invalid_argument,
  /// with nothing written, on sizes that do not fit, and std::logic_error on a step outside an
  /// episode.
  void append(std::span<const float> actions, const env::PoolBatch& batch);

  std::size_t size() const { return writers_.size(); }
  TransitionWriter& writer(std::size_t environment) { return writers_[environment]; }

  std::int64_t pending_items() const;

  /// What each environment's writer has, those without items left out, appended to `out`.
  void take(std::vector<InsertionPtr>& out);

  /// The states of all writers. load_state() throws as TransitionWriter does; nothing has changed
  /// then. The places are others afterwards.
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  std::size_t action_size_;
  std::vector<TransitionWriter> writers_;
  std::vector<std::byte*> places_;
};

} // namespace troupe::replay

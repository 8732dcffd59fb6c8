#pragma once

#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {

/// Writes random episodes and returns insertions of one item each.
struct TransitionSource {
  explicit TransitionSource(const TransitionSpec& s = state_spec(1, 2), std::uint64_t id = 1)
      : spec(s), writer(transition_writer(s, id)), player(s, 1) {}
  InsertionPtr next() {
    while (writer.pending_items() < 1)
      player.step(writer);
    return writer.take();
  }
  TransitionSpec spec;
  Writer writer;
  Player player;
};

} // namespace troupe::replay

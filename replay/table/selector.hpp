#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "replay/table/random.hpp"

namespace troupe::replay {

enum class SelectorKind : std::uint8_t { uniform, prioritized, fifo, lifo, min_heap, max_heap };
const char* selector_name(SelectorKind kind); // "uniform", "prioritized", …, as in experiment files
/// Throws std::invalid_argument with the list of names.
SelectorKind selector_named(const std::string& name);

struct SelectorConfig {
  SelectorKind kind = SelectorKind::uniform;
  double exponent = 1; // prioritized: the weight of an item is priority^exponent
  /// prioritized: the weight is also multiplied by max(fade^age, least_fade), where an item's age
  /// is the number of items inserted after it. 1: items do not fade.
  double fade = 1;
  double least_fade = 0.1;

  bool operator==(const SelectorConfig&) const = default;
};

/// Throws std::invalid_argument naming `key` ("replay.sampler"), the value and the rule.
void check(const SelectorConfig& config, const std::string& key);

constexpr double kMaxPriority = 1e12;
inline bool valid_priority(double priority) { // false for NaN
  return priority >= 0 && priority <= kMaxPriority;
}
/// Throws std::invalid_argument: "the priority of <whose> is nan but must be 0 to 1e12 …".
void check_priority(double priority, const std::string& whose);
/// Throws std::invalid_argument unless there is one priority for each key.
void check_counts(std::size_t keys, std::size_t priorities);

/// A chosen place and the probability of choosing it.
struct Selected {
  std::uint32_t place = 0;
  double probability = 1;
};

// clang-format off
/// Chooses among places; serves as a table's sampler or remover. Places are small numbers (memory
/// grows with the largest), and a place must be erased before it is inserted again. Used by one
/// thread at a time. Every call takes O(1) or O(log n) and allocates only to grow. All priorities
/// must be valid (valid_priority()).
///   uniform             chooses every place with the same probability
///   prioritized         chooses in proportion to priority^exponent; uniformly if all priorities
///                       are 0. For fading see FadedSelector, which needs the remover fifo.
///   fifo, lifo          chooses the place inserted first, last
///   min_heap, max_heap  chooses the place with the least, greatest priority; among equals the one
///                       inserted first
// clang-format on
class Selector {
public:
  virtual ~Selector() = default;

  virtual void insert(std::uint32_t place, double priority) = 0;
  virtual void erase(std::uint32_t place) = 0;
  /// Has no effect on selectors that ignore priorities.
  virtual void update(std::uint32_t /*place*/, double /*priority*/) {}
  /// Updates several places in order; equivalent to one update() per place.
  virtual void update(std::span<const std::uint32_t> places, std::span<const double> priorities);

  /// Chooses one place. There must be at least one.
  virtual Selected select(Random& random) const = 0;
  /// Makes independent choices; equivalent to out.size() calls of select().
  virtual void select(Random& random, std::span<Selected> out) const;

  virtual std::size_t size() const = 0;
  /// Returns the sum of the weights in proportion to which places are chosen; without weights, the
  /// number of places.
  virtual double total() const { return static_cast<double>(size()); }

  /// Writes all places to `out` in an order for checkpoints: an empty selector of the same kind
  /// into which they are inserted in this order, with their priorities, makes the same choices from
  /// then on.
  virtual void order(std::vector<std::uint32_t>& out) const = 0;
};

/// Throws as check() does.
std::unique_ptr<Selector> make_selector(const SelectorConfig& config);

inline bool uses_priorities(SelectorKind kind) {
  return kind == SelectorKind::prioritized || kind == SelectorKind::min_heap
         || kind == SelectorKind::max_heap;
}

} // namespace troupe::replay

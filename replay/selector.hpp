#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "replay/random.hpp"

namespace troupe::replay {

enum class SelectorKind : std::uint8_t { uniform, prioritized, fifo, lifo, min_heap, max_heap };
const char* selector_name(SelectorKind kind); // "uniform", "prioritized", …, as in experiment files
/// Throws std::invalid_argument with the list of names.
SelectorKind selector_named(const std::string& name);

struct SelectorConfig {
  SelectorKind kind = SelectorKind::uniform;
  double exponent = 1; // prioritized: the weight of an item is priority^exponent

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

/// A choice and how likely it was.
struct Selected {
  std::uint32_t place = 0;
  double probability = 1;
};

/// Chooses one of the places that it has been given, as a table's sampler or remover. Places are
/// small numbers (memory grows with the largest); each is inserted once before it is erased. One
/// thread. Everything is O(1) or O(log n) and allocates only to grow.
///   uniform      each alike
///   prioritized  in proportion to priority^exponent; one of priority 0 only where all are 0, and
///                then each alike
///   fifo, lifo   the one inserted first, last
///   min_heap, max_heap  the one of least, of greatest priority; of equal ones that inserted first
class Selector {
public:
  virtual ~Selector() = default;

  /// insert() and update() throw std::invalid_argument on a priority that is not valid.
  virtual void insert(std::uint32_t place, double priority) = 0;
  virtual void erase(std::uint32_t place) = 0;
  virtual void update(std::uint32_t place, double priority) = 0;

  /// Of at least one place.
  virtual Selected select(Random& random) const = 0;
  /// Independent ones; the same as so many select()s, whatever the size of the span.
  virtual void select(Random& random, std::span<Selected> out) const;

  virtual std::size_t size() const = 0;
  /// The sum of what places are chosen in proportion to: how many there are, or their weights.
  virtual double total() const { return static_cast<double>(size()); }
  virtual void clear() = 0;

  /// All places in an order of which this holds: inserted so into an empty selector of the same
  /// kind, with their priorities, they make one that chooses the same from then on. For saving.
  virtual void order(std::vector<std::uint32_t>& out) const = 0;
};

/// Throws as check() does.
std::unique_ptr<Selector> make_selector(const SelectorConfig& config);

inline bool uses_priorities(SelectorKind kind) {
  return kind == SelectorKind::prioritized || kind == SelectorKind::min_heap
         || kind == SelectorKind::max_heap;
}

} // namespace troupe::replay

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "env/spec.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::replay {

/// Describes the contents of a writer's time steps and how items are made from them. Every table,
/// file, writer and client has a signature and refuses data of another one.
struct Signature {
  std::vector<env::ArraySpec> columns; // names, types and shapes; [] is one number
  std::string items; // how items are made from steps ("sequences of 80"); may be empty

  bool operator==(const Signature&) const = default;
};

constexpr std::size_t kMaxColumns = 256;
constexpr std::size_t kMaxRowBytes = std::size_t{1} << 28;

/// The columns of a TransitionSpec without vectors. Vectors start at position kVectors and shift
/// the columns after the frame; RowLayout::place() returns their positions.
enum TransitionColumn : std::size_t { kFrame, kAction, kReward, kDiscount, kFirst, kExtras };
constexpr std::size_t kVectors = 1;
/// The goal of transitions with hindsight; they have no kFirst.
inline constexpr std::size_t kGoal = kFirst;
/// The running return of transitions that have it; they have no kFirst either.
inline constexpr TransitionColumn kRunningReturn = kFirst;

/// The columns of a transition's goal, reward and discount. Lane -1 is for original transitions,
/// any other for transitions relabelled in that lane.
struct HindsightColumns {
  std::size_t goal = 0;
  std::size_t reward = 0;
  std::size_t discount = 0;
};
constexpr HindsightColumns hindsight_columns(int lane) {
  if (lane < 0)
    return {kGoal, kReward, kDiscount};
  const std::size_t first = kGoal + 1 + 3 * static_cast<std::size_t>(lane);
  return {first, first + 1, first + 2};
}

/// True if messages and files can contain `text` as a Protobuf string.
bool is_utf8(const std::string& text);

/// Throws std::invalid_argument naming the column, its value and the rule.
void check(const Signature& signature);

/// Returns "pixels uint8 [3, 84, 84], action float32 [2], …; transitions of stack 3, …".
std::string describe(const Signature& signature);

/// Describes the first difference: the column, what was expected and what was received; "" if the
/// signatures are equal.
std::string difference(const Signature& expected, const Signature& got);

/// Returns the XXH3 of describe(), which is the same for equal signatures on every machine.
std::uint64_t fingerprint(const Signature& signature);

/// Positions of the columns in a row, in bytes from its beginning.
struct RowLayout {
  struct Column {
    std::size_t offset = 0; // a multiple of the element's size
    std::size_t bytes = 0;
  };

  /// Throws as check() does.
  explicit RowLayout(const Signature& signature);

  /// Returns the index in `columns` of a column of a TransitionSpec.
  std::size_t place(TransitionColumn column) const {
    return column == kFrame ? 0 : column + vectors;
  }
  const Column& of(TransitionColumn column) const { return columns[place(column)]; }

  Signature signature;
  std::vector<Column> columns;
  std::vector<Column> gaps;  // unused bytes between the columns and after the last one
  std::size_t vectors = 0;   // of a TransitionSpec: columns between "frame" and "action"
  std::size_t row_bytes = 0; // distance between rows, a multiple of 16
};

} // namespace troupe::replay

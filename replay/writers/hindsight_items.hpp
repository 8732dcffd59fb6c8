#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/batch/column_batch.hpp"
#include "replay/writers/sequence_items.hpp"
#include "replay/writers/writer.hpp"

namespace troupe::replay {

struct HindsightOptions {
  /// The items; length 2 and period 1 are transitions.
  SequenceOptions items{.length = 2, .period = 1, .end = EpisodeEnd::drop};
  std::vector<std::string> columns; // whose values a relabelled item replaces
  Slice rows{};                     // of an item, whose values it replaces; count 0: to its end
  int goals = 4;                    // relabelled items per item; 0: none
  GoalStrategy strategy = GoalStrategy::future;
  std::int64_t max_rows = 1001; // of an episode
  std::uint64_t seed = 1;       // of the choice of goals
  /// Called before each row is appended, to write columns that follow from its others.
  std::function<void(Writer&)> complete = {};
};

/// The layout of relabelled values: additional columns beside those of `steps`. Each of
/// options.columns has one more column per lane, "goal#0", "goal#1", …. By its shape, an item of
/// lane l shows "goal#l" and not "goal", an original item "goal" and no lane; they share the rows
/// of all other columns. Items of one lane have no relabelled row in common, so there are goals *
/// ceil(relabelled rows of an item / period) lanes (with EpisodeEnd::shift, goals more), and a row
/// needs the bytes of options.columns that many times more.
class HindsightLayout {
public:
  /// Throws std::invalid_argument on columns that `steps` lacks or that are named twice, on options
  /// out of range, and on more than kMaxColumns columns in total.
  HindsightLayout(const Signature& steps, const HindsightOptions& options);

  const Signature& signature() const { return signature_; } // of tables, writers and clients
  int lanes() const { return lanes_; }

  /// The lane of an item by its shape, or by the columns that a client received; -1: an original
  /// item.
  int lane(const ItemShape& shape) const;
  int lane(const ColumnPart& part, std::size_t item) const;

  /// The column of signature() with an item's values of column `column` of `steps`.
  std::size_t column(std::size_t column, int lane) const;

  /// The first column of signature() with relabelled values.
  std::size_t first_lane_column() const { return own_columns_; }

  /// What an item of `rows` rows shows; lane -1: the original item.
  ItemShape shape(std::uint32_t rows, int lane) const;

private:
  Signature signature_;
  std::size_t own_columns_ = 0; // of `steps`
  std::vector<std::size_t> relabelled_;
  Slice rows_;
  int lanes_ = 0;
};

/// A finished episode, and one of its items that is to be relabelled. Rows are counted from the
/// first row of the episode.
class Relabelling {
public:
  Relabelling(Writer& writer, const HindsightLayout& layout, std::int64_t begin, std::int64_t rows)
      : writer_(&writer), layout_(&layout), begin_(begin), rows_(rows) {}

  std::int64_t rows() const { return rows_; } // of the episode
  std::int64_t first() const { return first_; }
  std::int64_t count() const { return count_; } // rows from first() on are to be written
  std::int64_t goal() const { return goal_; }   // the row whose outcome is the goal

  /// What the environment's writer stored, of any row of the episode and any column.
  std::span<const std::byte> at(std::int64_t row, std::size_t column) const;

  /// Where the new value of a column of options.columns is written, for rows
  /// [first, first + count). Initially the value of an earlier item, or zeros.
  std::span<std::byte> replace(std::int64_t row, std::size_t column) const;

  /// The item to be relabelled next.
  void set_item(std::int64_t first, std::int64_t count, std::int64_t goal, int lane) {
    first_ = first;
    count_ = count;
    goal_ = goal;
    lane_ = lane;
  }

private:
  Writer* writer_;
  const HindsightLayout* layout_;
  std::int64_t begin_; // the writer's number of the episode's first row
  std::int64_t rows_;
  std::int64_t first_ = 0, count_ = 0, goal_ = 0;
  int lane_ = 0;
};

/// Writes the replaced values and returns the item's priority, or nothing for no such item.
using Relabel = std::function<std::optional<double>(const Relabelling&)>;

// clang-format off
/// A writer of HindsightLayout(steps, options).signature() that makes items of whole episodes of one
/// environment, and for each item `goals` more that are relabelled. Gives out an episode's rows and
/// items only after its end. `priority`: of the original items. append_step() throws
/// std::length_error on row max_rows + 1 and changes nothing then; abandon() ends that episode
/// without items. If relabel or priority throws, the episode is over, with the items added so far.
/// Throws std::invalid_argument as HindsightLayout, sequence_writer() and Writer do.
///
///   Writer writer = hindsight_writer(steps, 7, {.columns = {"goal", "reward"}}, [&](const Relabelling& item) {
///     const auto goal = item.at(item.goal(), kAchieved);
///     for (std::int64_t row = item.first(); row < item.first() + item.count(); ++row) {
///       std::ranges::copy(goal, item.replace(row, kGoal).begin());
///       write(item.replace(row, kReward), reward(item.at(row, kAchieved), goal));
///     }
///     return 1.0;
///   });
// clang-format on
Writer hindsight_writer(const Signature& steps, std::uint64_t writer_id,
                        const HindsightOptions& options, Relabel relabel,
                        const ItemPriority& priority = {});

} // namespace troupe::replay

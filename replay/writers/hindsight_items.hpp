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
  /// How items are cut from episodes; length 2 and period 1 make transitions.
  SequenceOptions items{.length = 2, .period = 1, .end = EpisodeEnd::drop};
  std::vector<std::string> columns; // the columns that a relabelled item replaces
  Slice rows{};  // the rows of an item that it replaces; count 0: to the item's end
  int goals = 4; // number of relabelled items per item
  GoalStrategy strategy = GoalStrategy::future;
  std::int64_t max_rows = 1001; // of the longest episode
  std::uint64_t seed = 1;       // for the choice of goals
  /// Called before each row is appended, to write columns that are computed from its other columns.
  std::function<void(Writer&)> complete = {};
};

/// The layout of relabelled values, which are stored in columns in addition to those of `steps`.
/// Each column in options.columns gets one more column per lane: "goal#0", "goal#1", …. The shape
/// of an item in lane l shows "goal#l" instead of "goal"; an original item shows "goal" and no
/// lane. They share the rows of all other columns. Items of one lane have no relabelled row in
/// common. Therefore there are goals * ceil(relabelled rows of an item / period) lanes, plus
/// `goals` with EpisodeEnd::shift, and a row needs the bytes of options.columns once more for each
/// lane.
class HindsightLayout {
public:
  /// Throws std::invalid_argument if options.columns contains a column twice or one that `steps`
  /// does not have, if an option is out of range, or if there are more than kMaxColumns columns in
  /// total.
  HindsightLayout(const Signature& steps, const HindsightOptions& options);

  const Signature& signature() const { return signature_; } // for tables, writers and clients
  int lanes() const { return lanes_; }

  /// Returns the lane of an item, given its shape or the columns that a client received; -1 for an
  /// original item.
  int lane(const ItemShape& shape) const;
  int lane(const ColumnPart& part, std::size_t item) const;

  /// Returns the column of signature() that contains column `column` of `steps` for an item in this
  /// lane.
  std::size_t column(std::size_t column, int lane) const;

  /// Returns the first column of signature() with relabelled values.
  std::size_t first_lane_column() const { return own_columns_; }

  /// Returns the shape of an item of `rows` rows in this lane; lane -1 is the original item.
  ItemShape shape(std::uint32_t rows, int lane) const;

private:
  Signature signature_;
  std::size_t own_columns_ = 0; // number of columns of `steps`
  std::vector<std::size_t> relabelled_;
  Slice rows_;
  int lanes_ = 0;
};

/// A finished episode and one of its items, which is to be relabelled. Rows are counted from the
/// first row of the episode.
class Relabelling {
public:
  Relabelling(Writer& writer, const HindsightLayout& layout, std::int64_t begin, std::int64_t rows)
      : writer_(&writer), layout_(&layout), begin_(begin), rows_(rows) {}

  std::int64_t rows() const { return rows_; } // of the episode
  std::int64_t first() const { return first_; }
  std::int64_t count() const { return count_; } // number of rows to be written, from first() on
  std::int64_t goal() const { return goal_; }   // the row whose outcome is the goal

  /// Returns the value that the writer stored for any column of any row of the episode.
  std::span<const std::byte> at(std::int64_t row, std::size_t column) const;

  /// Returns the memory for the new value of a column in options.columns, for rows [first, first +
  /// count). Initially it contains the value of an earlier item, or zeros.
  std::span<std::byte> replace(std::int64_t row, std::size_t column) const;

  /// Selects the item to be relabelled next.
  void set_item(std::int64_t first, std::int64_t count, std::int64_t goal, int lane) {
    first_ = first;
    count_ = count;
    goal_ = goal;
    lane_ = lane;
  }

private:
  Writer* writer_;
  const HindsightLayout* layout_;
  std::int64_t begin_; // the writer's row number of the episode's first row
  std::int64_t rows_;
  std::int64_t first_ = 0, count_ = 0, goal_ = 0;
  int lane_ = 0;
};

/// Writes the new values and returns the item's priority, or std::nullopt if the item is to be left
/// out.
using Relabel = std::function<std::optional<double>(const Relabelling&)>;

// clang-format off
/// Returns a writer of HindsightLayout(steps, options).signature(). It cuts the episodes of one
/// environment into items and adds `goals` relabelled items for each. take() returns the rows and
/// items of an episode only after its end. `priority` is for the original items.
///
/// append_step() throws std::length_error on row max_rows + 1 of an episode, without changing
/// anything; abandon() then ends that episode without items. If relabel or priority throws, the
/// episode has ended, with the items added so far. Throws std::invalid_argument as HindsightLayout,
/// sequence_writer() and Writer do.
///
///   const auto relabel = [&](const Relabelling& item) {
///     const auto goal = item.at(item.goal(), kAchieved);
///     for (std::int64_t row = item.first(); row < item.first() + item.count(); ++row) {
///       std::ranges::copy(goal, item.replace(row, kGoal).begin());
///       write(item.replace(row, kReward), reward(item.at(row, kAchieved), goal));
///     }
///     return 1.0;
///   };
///   Writer writer = hindsight_writer(steps, 7, {.columns = {"goal", "reward"}}, relabel);
// clang-format on
Writer hindsight_writer(const Signature& steps, std::uint64_t writer_id,
                        const HindsightOptions& options, Relabel relabel,
                        const ItemPriority& priority = {});

} // namespace troupe::replay

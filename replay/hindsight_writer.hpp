#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "replay/column_batch.hpp"
#include "replay/random.hpp"
#include "replay/sequence_writer.hpp"
#include "replay/writer.hpp"

namespace troupe::replay {

/// Which row of the episode gives an additional item its goal (hindsight experience replay,
/// Andrychowicz et al. 2017). `final`: the last one, so one goal is enough. `future`: any after the
/// first row that the item is about (its history left out), each as likely; without any, the last.
/// `episode`: any.
enum class GoalStrategy : std::uint8_t { final, future, episode };

struct HindsightOptions {
  /// What the items are; {2, 1} are transitions.
  SequenceOptions items{.length = 2, .period = 1, .end = EpisodeEnd::drop};
  std::vector<std::string> columns; // those that a relabelled item has other values of
  Slice rows{};                     // of an item, in which it has them; count 0: to its end
  int goals = 4;                    // relabelled items for each item; 0: none
  GoalStrategy strategy = GoalStrategy::future;
  std::int64_t max_rows = 1001; // of an episode
  std::uint64_t seed = 1;       // of the choice of goals
};

/// Where relabelled values lie. They are columns of their own beside those of `steps`: each of
/// options.columns has one more for each lane, "goal#0", "goal#1", …. An item of lane l shows
/// "goal#l" and not "goal", an original one "goal" and no lane, both by their shapes; all other
/// columns are the same rows for all of them, stored once. Items of one lane have no relabelled row
/// in common, so there are goals * ceil(relabelled rows of an item / period) lanes (with
/// EpisodeEnd::shift, goals more), and a row costs the bytes of options.columns that many times
/// more, whatever else it holds.
class HindsightLayout {
public:
  /// Throws std::invalid_argument on columns that `steps` does not have, or has twice, on options
  /// out of range, and on more than kMaxColumns in all.
  HindsightLayout(const Signature& steps, const HindsightOptions& options);

  const Signature& signature() const { return signature_; } // of tables, writers and clients
  int lanes() const { return lanes_; }

  /// The lane of an item by its shape, or by the columns that a client got; -1: an original one.
  int lane(const ItemShape& shape) const;
  int lane(const ColumnPart& part, std::size_t item) const;

  /// Which column of signature() has an item's values of column `column` of `steps`.
  std::size_t column(std::size_t column, int lane) const;

  /// The columns of relabelled values: from this one of signature() on.
  std::size_t first_lane_column() const { return own_columns_; }

  /// What an item of `rows` rows shows; of lane -1: the original one.
  ItemShape shape(std::uint32_t rows, int lane) const;

private:
  Signature signature_;
  std::size_t own_columns_ = 0; // of `steps`
  std::vector<std::size_t> relabelled_;
  Slice rows_;
  int lanes_ = 0;
};

/// A finished episode and one item of it that is about to be relabelled. Rows are counted from the
/// first of the episode.
class Relabelling {
public:
  std::int64_t rows() const { return rows_; } // of the episode
  std::int64_t first() const { return first_; }
  std::int64_t count() const { return count_; } // rows from first() on are to be written
  std::int64_t goal() const { return goal_; }   // the row whose outcome is the goal

  /// What was written, of any row of the episode and any column.
  std::span<const std::byte> at(std::int64_t row, std::size_t column) const;

  /// Where another value of a column of options.columns is written, of rows [first, first + count).
  /// What is not written is what was there, of an earlier item or zeros.
  std::span<std::byte> replace(std::int64_t row, std::size_t column) const;

private:
  friend class HindsightWriter;
  Writer* writer_ = nullptr;
  const HindsightLayout* layout_ = nullptr;
  std::int64_t begin_ = 0; // the writer's row
  std::int64_t rows_ = 0, first_ = 0, count_ = 0, goal_ = 0;
  int lane_ = 0;
};

/// Writes the replaced values and returns the item's priority, or nothing when there should be no
/// such item.
using Relabel = std::function<std::optional<double>(const Relabelling&)>;

/// Makes items of whole episodes of one environment and, of each, `goals` more that were
/// relabelled. Nothing is given out before the episode's end. As a Writer otherwise.
///
///   HindsightWriter writer(steps, 7, {.columns = {"goal", "reward"}}, [&](const Relabelling& item)
///   {
///     const auto goal = item.at(item.goal(), kAchieved);
///     for (std::int64_t row = item.first(); row < item.first() + item.count(); ++row) {
///       std::ranges::copy(goal, item.replace(row, kGoal).begin());
///       write(item.replace(row, kReward), reward(item.at(row, kAchieved), goal));
///     }
///     return 1.0;
///   });
class HindsightWriter {
public:
  /// `priority`: of the original items; 1 without it. Throws std::invalid_argument as
  /// HindsightLayout, SequenceWriter and Writer do.
  HindsightWriter(const Signature& steps, std::uint64_t writer_id, const HindsightOptions& options,
                  Relabel relabel, ItemPriority priority = {});

  std::span<std::byte> next(std::size_t column) { return writer_.next(column); }

  /// The row of next() is a step now; `last` of its episode. Throws std::length_error when it is
  /// one more than max_rows: nothing has changed then, and abandon() gets on. What relabel and
  /// priority throw goes through: the episode is over then, with the items made until there.
  void append(bool last);

  /// The open episode gives no items.
  void abandon() { rows_ = 0; }

  const HindsightLayout& layout() const { return layout_; }
  std::int64_t pending_items() const { return writer_.pending_items(); }
  InsertionPtr take() { return writer_.take(writer_.rows() - rows_); }

  /// As Writer's, with the open episode and the state of the choice of goals.
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  void end_episode(std::int64_t rows);
  void add_items(const Window& window, std::int64_t written, std::int64_t rows,
                 std::int64_t number);
  std::int64_t choose_goal(const Window& window, std::int64_t rows);
  void add_item(const Window& window, int lane, double priority);

  HindsightOptions options_;
  HindsightLayout layout_;
  Relabel relabel_;
  ItemPriority priority_;
  Writer writer_;
  Random random_;
  std::int64_t rows_ = 0;                                    // of the open episode
  std::map<std::pair<std::uint32_t, int>, ShapePtr> shapes_; // by rows and lane
};

} // namespace troupe::replay

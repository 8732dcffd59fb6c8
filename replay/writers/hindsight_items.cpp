#include "replay/writers/hindsight_items.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "env/text/joined.hpp"
#include "replay/table/random.hpp"
#include "replay/writers/writer_state.hpp"

namespace troupe::replay {

namespace {

constexpr int kMostGoals = 64;

[[noreturn]] void refuse_option(const std::string& field, const std::string& value,
                                const std::string& rule) {
  throw std::invalid_argument("replay hindsight: " + field + " is " + value + " but must be "
                              + rule);
}

std::size_t column_named(const Signature& steps, const std::string& name) {
  for (std::size_t i = 0; i < steps.columns.size(); ++i)
    if (steps.columns[i].name == name)
      return i;
  refuse_option("a relabelled column", "'" + name + "'",
                "one of " + env::joined(steps.columns, ", ", &env::ArraySpec::name));
}

/// Returns the rows to be relabelled in an item of `count` rows.
Slice clipped(const Slice& rows, std::int64_t count) {
  const auto all = static_cast<std::uint32_t>(count);
  const std::uint32_t first = std::min(rows.first, all);
  return {first, rows.count == 0 ? all - first : std::min(rows.count, all - first)};
}

std::int64_t lanes_of(const HindsightOptions& options) {
  if (options.goals == 0)
    return 0;
  const std::int64_t rows = clipped(options.rows, options.items.length).count;
  const std::int64_t each = (rows + options.items.period - 1) / options.items.period
                            + (options.items.end == EpisodeEnd::shift ? 1 : 0);
  return options.goals * each;
}

} // namespace

HindsightLayout::HindsightLayout(const Signature& steps, const HindsightOptions& options)
    : signature_(steps), own_columns_(steps.columns.size()), rows_(options.rows) {
  check(options.items);
  if (options.goals < 0 || options.goals > kMostGoals)
    refuse_option("goals", std::to_string(options.goals), "0 to " + std::to_string(kMostGoals));
  if (options.columns.empty())
    refuse_option("columns", "empty", "the names of the columns that another goal changes");
  if (clipped(rows_, options.items.length).count == 0)
    refuse_option("rows.first", std::to_string(rows_.first),
                  "less than the length of an item, " + std::to_string(options.items.length));
  for (const std::string& name : options.columns) {
    relabelled_.push_back(column_named(steps, name));
    if (std::count(relabelled_.begin(), relabelled_.end(), relabelled_.back()) > 1)
      refuse_option("columns", "'" + name + "' twice", "each once");
  }
  const std::int64_t lanes = lanes_of(options);
  const std::int64_t columns = static_cast<std::int64_t>(own_columns_)
                               + lanes * static_cast<std::int64_t>(relabelled_.size());
  if (columns > static_cast<std::int64_t>(kMaxColumns))
    refuse_option("the number of columns", std::to_string(columns),
                  "at most " + std::to_string(kMaxColumns) + " with " + std::to_string(lanes)
                      + " lanes (goals * relabelled rows / period); ask for fewer goals, a longer "
                        "period, or fewer relabelled rows");
  lanes_ = static_cast<int>(lanes);
  for (int lane = 0; lane < lanes_; ++lane)
    for (const std::size_t column : relabelled_) {
      env::ArraySpec copy = steps.columns[column];
      copy.name += '#';
      copy.name += std::to_string(lane);
      signature_.columns.push_back(std::move(copy));
    }
  check(signature_);
}

std::size_t HindsightLayout::column(std::size_t column, int lane) const {
  const auto found = std::find(relabelled_.begin(), relabelled_.end(), column);
  if (lane < 0 || found == relabelled_.end())
    return column;
  return own_columns_ + static_cast<std::size_t>(lane) * relabelled_.size()
         + static_cast<std::size_t>(found - relabelled_.begin());
}

int HindsightLayout::lane(const ItemShape& shape) const {
  for (int lane = 0; lane < lanes_; ++lane)
    if (!shape.columns.at(column(relabelled_[0], lane)).empty())
      return lane;
  return -1;
}

int HindsightLayout::lane(const ColumnPart& part, std::size_t item) const {
  for (int lane = 0; lane < lanes_; ++lane)
    if (!part.rows(column(relabelled_[0], lane), item).empty())
      return lane;
  return -1;
}

ItemShape HindsightLayout::shape(std::uint32_t rows, int lane) const {
  ItemShape made;
  made.columns.resize(signature_.columns.size());
  for (std::size_t i = 0; i < own_columns_; ++i)
    made.columns[i] = {{0, rows}};
  if (lane < 0)
    return made;
  for (const std::size_t i : relabelled_) {
    made.columns[i].clear();
    made.columns[column(i, lane)] = {clipped(rows_, rows)};
  }
  return made;
}

std::span<const std::byte> Relabelling::at(std::int64_t row, std::size_t column) const {
  if (row < 0 || row >= rows_)
    throw std::out_of_range("replay hindsight: the episode has rows 0 to "
                            + std::to_string(rows_ - 1) + " and not " + std::to_string(row));
  return writer_->at(begin_ + row, column);
}

std::span<std::byte> Relabelling::replace(std::int64_t row, std::size_t column) const {
  const std::size_t place = layout_->column(column, lane_);
  if (row < first_ || row >= first_ + count_ || place == column)
    throw std::out_of_range(
        "replay hindsight: column " + std::to_string(column) + " of row " + std::to_string(row)
        + " is not relabelled; the item's columns of rows " + std::to_string(first_) + " to "
        + std::to_string(first_ + count_ - 1) + " are");
  return writer_->rewrite(begin_ + row, place);
}

namespace {

class HindsightItems final : public ItemPolicy {
public:
  HindsightItems(const HindsightOptions& options, HindsightLayout layout, Relabel relabel)
      : options_(options),
        layout_(std::move(layout)),
        relabel_(std::move(relabel)),
        random_(options.seed) {}

  void before_row(Writer& writer, std::int64_t row) override {
    if (row == options_.max_rows)
      throw std::length_error("replay hindsight: the episode has more rows than max_rows = "
                              + std::to_string(options_.max_rows)
                              + "; raise it or end the episode earlier");
    if (options_.complete)
      options_.complete(writer);
    for (std::size_t i = layout_.first_lane_column(); i < layout_.signature().columns.size(); ++i)
      std::ranges::fill(writer.next(i), std::byte{0});
  }

  void after_row(Writer& writer, std::int64_t rows, bool last) override {
    if (!last)
      return;
    const SequenceOptions& items = options_.items;
    const std::optional<Window> cut = cut_sequence(items, rows);
    const std::int64_t padding =
        cut && items.end == EpisodeEnd::pad ? items.length - cut->count : 0;
    const std::int64_t begin = writer.rows() - rows;
    writer.append_zeros(padding);
    const auto burn_in = static_cast<std::uint32_t>(items.burn_in);
    Relabelling one(writer, layout_, begin, rows);
    std::int64_t number = 0;
    for (std::int64_t first = 0; first + items.length <= rows; first += items.period)
      add_items(writer, one, begin, {first, items.length, burn_in}, number++);
    if (cut)
      add_items(writer, one, begin, {cut->first, cut->count + padding, burn_in}, number);
  }

  bool keeps_open_episode() const override { return true; }

  void save_state(std::vector<std::byte>& out) const override { put(out, random_.state); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    random_.state = take_value<decltype(random_.state)>(in);
    return in;
  }

private:
  std::int64_t choose_goal(const Window& window, std::int64_t rows) {
    const auto among = [this](std::int64_t first, std::int64_t end) {
      return first
             + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(end - first)));
    };
    const std::int64_t after = window.first + window.history + 1;
    if (options_.strategy == GoalStrategy::episode)
      return among(0, rows);
    return options_.strategy == GoalStrategy::future && after < rows ? among(after, rows)
                                                                     : rows - 1;
  }

  /// Adds the item of a window, whose rows are counted from the episode's first row, and its
  /// relabelled items. `number` is the number of the window in its episode.
  void add_items(Writer& writer, Relabelling& one, std::int64_t begin, const Window& window,
                 std::int64_t number) {
    const Window placed{begin + window.first, window.count, window.history};
    writer.add_item(placed, shape(window.count, -1));
    const Slice relabelled = clipped(options_.rows, window.count);
    const std::int64_t first = window.first + relabelled.first;
    const std::int64_t count = std::min<std::int64_t>(relabelled.count, one.rows() - first);
    for (int goal = 0; count > 0 && goal < options_.goals; ++goal) {
      const int lane = static_cast<int>(number * options_.goals % layout_.lanes()) + goal;
      one.set_item(first, count, choose_goal(window, one.rows()), lane);
      if (const std::optional<double> priority = relabel_(one))
        writer.add_item(placed.first, placed.count, placed.history, shape(window.count, lane),
                        *priority);
    }
  }

  ShapePtr shape(std::int64_t count, int lane) {
    const auto rows = static_cast<std::uint32_t>(count);
    ShapePtr& made = shapes_[{rows, lane}];
    if (!made)
      made = std::make_shared<const ItemShape>(layout_.shape(rows, lane));
    return made;
  }

  HindsightOptions options_;
  HindsightLayout layout_;
  Relabel relabel_;
  Random random_;
  std::map<std::pair<std::uint32_t, int>, ShapePtr> shapes_; // by rows and lane
};

} // namespace

Writer hindsight_writer(const Signature& steps, std::uint64_t writer_id,
                        const HindsightOptions& options, Relabel relabel,
                        const ItemPriority& priority) {
  HindsightLayout layout(steps, options);
  if (options.max_rows < 1)
    refuse_option("max_rows", std::to_string(options.max_rows), "at least 1");
  if (!relabel)
    refuse_option("the relabelling function", "missing", "one that writes the replaced values");
  const Signature signature = layout.signature();
  return Writer(signature, writer_id,
                {.chunk_rows = options.items.chunk_rows,
                 .reach = options.max_rows + options.items.length,
                 .priority = priority},
                std::make_unique<HindsightItems>(options, std::move(layout), std::move(relabel)));
}

} // namespace troupe::replay

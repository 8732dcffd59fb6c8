#include "replay/hindsight_writer.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "replay/writer_state.hpp"

namespace troupe::replay {

namespace {

constexpr int kMostGoals = 64;

[[noreturn]] void refuse_option(const std::string& field, const std::string& value,
                                const std::string& rule) {
  throw std::invalid_argument("replay hindsight: " + field + " is " + value + " but must be "
                              + rule);
}

std::size_t column_named(const Signature& steps, const std::string& name) {
  std::string names;
  for (std::size_t i = 0; i < steps.columns.size(); ++i) {
    if (steps.columns[i].name == name)
      return i;
    names += (names.empty() ? "" : ", ") + steps.columns[i].name;
  }
  refuse_option("a relabelled column", "'" + name + "'", "one of " + names);
}

/// The relabelled rows of an item of `count` rows.
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
    refuse_option("columns", "empty", "the names of those that another goal changes");
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

HindsightWriter::HindsightWriter(const Signature& steps, std::uint64_t writer_id,
                                 const HindsightOptions& options, Relabel relabel,
                                 ItemPriority priority)
    : options_(options),
      layout_(steps, options),
      relabel_(std::move(relabel)),
      priority_(std::move(priority)),
      writer_(layout_.signature(), writer_id,
              {.chunk_rows = options.items.chunk_rows,
               .reach = options.max_rows + options.items.length}),
      random_(options.seed) {
  if (options.max_rows < 1)
    refuse_option("max_rows", std::to_string(options.max_rows), "at least 1");
  if (!relabel_)
    refuse_option("the relabelling function", "missing", "one that writes the replaced values");
}

void HindsightWriter::append(bool last) {
  if (rows_ == options_.max_rows)
    throw std::length_error("replay hindsight: the episode has more rows than max_rows = "
                            + std::to_string(options_.max_rows)
                            + "; raise it or end the episode earlier");
  for (std::size_t i = layout_.first_lane_column(); i < layout_.signature().columns.size(); ++i)
    std::ranges::fill(writer_.next(i), std::byte{0});
  writer_.append(
      static_cast<std::uint8_t>((rows_ == 0 ? Chunk::kFirst : 0) | (last ? Chunk::kLast : 0)));
  ++rows_;
  if (last)
    end_episode(std::exchange(rows_, 0));
}

void HindsightWriter::end_episode(std::int64_t rows) {
  const SequenceOptions& items = options_.items;
  const std::optional<Window> cut = cut_sequence(items, rows);
  const std::int64_t padding = cut && items.end == EpisodeEnd::pad ? items.length - cut->count : 0;
  append_zeros(writer_, padding);
  const auto burn_in = static_cast<std::uint32_t>(items.burn_in);
  std::int64_t number = 0;
  for (std::int64_t first = 0; first + items.length <= rows; first += items.period)
    add_items({first, items.length, burn_in}, rows + padding, rows, number++);
  if (cut)
    add_items({cut->first, cut->count + padding, burn_in}, rows + padding, rows, number);
}

std::int64_t HindsightWriter::choose_goal(const Window& window, std::int64_t rows) {
  const auto among = [this](std::int64_t first, std::int64_t end) {
    return first
           + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(end - first)));
  };
  switch (options_.strategy) {
  case GoalStrategy::final:
    break;
  case GoalStrategy::future:
    if (const std::int64_t after = window.first + window.history + 1; after < rows)
      return among(after, rows);
    break;
  case GoalStrategy::episode:
    return among(0, rows);
  }
  return rows - 1;
}

/// The item of a window (counted from the episode's first row) and those that are relabelled.
/// `written`: rows since then, padding included; `number`: of the window in its episode.
void HindsightWriter::add_items(const Window& window, std::int64_t written, std::int64_t rows,
                                std::int64_t number) {
  const std::int64_t begin = writer_.rows() - written;
  const Window placed{begin + window.first, window.count, window.history};
  add_item(placed, -1, priority_ ? priority_(writer_, placed) : 1);
  const Slice relabelled = clipped(options_.rows, window.count);
  Relabelling one;
  one.writer_ = &writer_;
  one.layout_ = &layout_;
  one.begin_ = begin;
  one.rows_ = rows;
  one.first_ = window.first + relabelled.first;
  one.count_ = std::min<std::int64_t>(relabelled.count, rows - one.first_);
  if (one.count_ < 1)
    return;
  for (int goal = 0; goal < options_.goals; ++goal) {
    one.lane_ = static_cast<int>(number * options_.goals % layout_.lanes()) + goal;
    one.goal_ = choose_goal(window, rows);
    if (const std::optional<double> priority = relabel_(one))
      add_item(placed, one.lane_, *priority);
  }
}

void HindsightWriter::add_item(const Window& window, int lane, double priority) {
  const auto rows = static_cast<std::uint32_t>(window.count);
  ShapePtr& shape = shapes_[{rows, lane}];
  if (!shape)
    shape = std::make_shared<const ItemShape>(layout_.shape(rows, lane));
  writer_.add_item(window.first, window.count, window.history, shape, priority);
}

void HindsightWriter::save_state(std::vector<std::byte>& out) const {
  put(out, random_.state);
  save_episode(out, rows_, writer_);
}

std::span<const std::byte> HindsightWriter::load_state(std::span<const std::byte> in) {
  const auto state = take_value<decltype(random_.state)>(in);
  rows_ = load_episode(in, writer_, options_.max_rows);
  random_.state = state;
  return in;
}

} // namespace troupe::replay

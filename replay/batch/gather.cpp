#include "replay/batch/gather.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "replay/batch/prefetch.hpp"

namespace troupe::replay {

namespace {

void need(const char* name, std::size_t have, std::size_t wanted) {
  if (have < wanted)
    throw std::invalid_argument("batch." + std::string(name) + " has " + std::to_string(have)
                                + " entries but the requested rows need " + std::to_string(wanted));
}

template <typename Value>
void set_value(std::span<Value> column, std::size_t row, Value value) {
  if (!column.empty())
    column[row] = value;
}

} // namespace

void check(const TransitionSpec& spec, const BatchView& batch, std::int64_t first_row,
           std::int64_t count) {
  if (first_row < 0 || count < 0)
    throw std::invalid_argument("batch rows from " + std::to_string(first_row) + ", "
                                + std::to_string(count) + " of them: neither may be negative");
  const auto rows = static_cast<std::size_t>(first_row) + static_cast<std::size_t>(count);
  const std::size_t observation_bytes = spec.frame.bytes() * static_cast<std::size_t>(spec.stack);
  const bool sequences = spec.is_sequence();
  const std::size_t steps = rows * (sequences ? static_cast<std::size_t>(spec.sequence_steps) : 1);
  need("observation", batch.observation.size(),
       (sequences ? steps + rows : rows) * observation_bytes);
  if (!sequences)
    need("next_observation", batch.next_observation.size(), rows * observation_bytes);
  need("action", batch.action.size(), steps * static_cast<std::size_t>(spec.action_size));
  need("reward", batch.reward.size(), steps);
  need("discount", batch.discount.size(), steps);
  need("running_return", batch.running_return.size(), spec.running_return ? rows : 0);
  need("key", batch.key.size(), rows);
  if (sequences)
    need("first", batch.first.size(), steps + rows);
  need("vectors", batch.vectors.size(), spec.vectors.size());
  need("next_vectors", batch.next_vectors.size(), sequences ? 0 : spec.vectors.size());
  for (std::size_t i = 0; i < spec.vectors.size(); ++i) {
    const std::size_t bytes = spec.vectors[i].bytes();
    need(spec.vectors[i].name.c_str(), batch.vectors[i].size(),
         (sequences ? steps + rows : rows) * bytes);
    if (!sequences)
      need(spec.vectors[i].name.c_str(), batch.next_vectors[i].size(), rows * bytes);
  }
  need("extras", batch.extras.size(), spec.extras.size());
  for (std::size_t i = 0; i < spec.extras.size(); ++i)
    need(spec.extras[i].name.c_str(), batch.extras[i].size(), steps * spec.extras[i].bytes());
  const auto if_given = [&](const char* name, std::size_t have) {
    if (have > 0)
      need(name, have, rows);
  };
  if_given("priority", batch.priority.size());
  if_given("probability", batch.probability.size());
  if_given("times_sampled", batch.times_sampled.size());
  if_given("table_items", batch.table_items.size());
}

ItemShape transition_shape(const TransitionSpec& spec, std::uint32_t history, std::uint32_t steps) {
  const auto stack = static_cast<std::uint32_t>(spec.stack);
  const Slice first{history + 1, 1};
  const Slice all{history + 1, steps};
  ItemShape shape{{{{0, history + 1}, {history + 1 + steps - stack, stack}}}};
  shape.columns.insert(shape.columns.end(), spec.vectors.size(),
                       {{history, 1}, {history + steps, 1}});
  for (const Slice& slice : {first, all, all}) // action, reward, discount
    shape.columns.push_back({slice});
  if (spec.running_return)
    shape.columns.push_back({first});
  return shape;
}

std::optional<int> hindsight_lane(const TransitionSpec& spec, const ItemShape* shape) {
  const auto lanes = static_cast<std::size_t>(spec.hindsight.goals);
  if (shape == nullptr || shape->columns.size() != kGoal + 1 + 3 * lanes)
    return {};
  int lane = -1;
  for (int i = 0; lane < 0 && i < spec.hindsight.goals; ++i)
    if (!shape->columns[hindsight_columns(i).goal].empty())
      lane = i;
  const HindsightColumns own = hindsight_columns(lane);
  for (std::size_t column = 0; column < shape->columns.size(); ++column) {
    const bool is_own = column == own.goal || column == own.reward || column == own.discount;
    const std::vector<Slice>& slices = shape->columns[column];
    const bool whole = column <= kAction || (is_own && lane < 0);
    if (!whole && !is_own ? !slices.empty()
                          : slices.size() != 1 || slices[0] != (whole ? Slice{0, 2} : Slice{1, 1}))
      return {};
  }
  return lane;
}

namespace {

/// True if gather() can read `item`, which needs the rows of its window, whether its shape shows
/// them or not.
bool is_readable(const TransitionSpec& spec, const Item& item) {
  const auto stack = static_cast<std::uint32_t>(spec.stack);
  if (spec.is_sequence())
    return item.history < stack && item.shape == nullptr
           && std::int64_t{item.rows} == item.history + 1 + spec.sequence_steps;
  if (spec.has_hindsight())
    return item.history == 0 && item.rows == 2 && hindsight_lane(spec, item.shape.get());
  return item.history < stack && item.rows > item.history + 1
         && item.steps() <= static_cast<std::uint32_t>(spec.n_step);
}

} // namespace

bool is_transition(const TransitionSpec& spec, const Item& item) {
  if (!is_readable(spec, item))
    return false;
  if (item.shape == nullptr || spec.has_hindsight())
    return true;
  return item.steps() > static_cast<std::uint32_t>(spec.stack)
         && *item.shape == transition_shape(spec, item.history, item.steps());
}

void put_choice(const BatchView& batch, std::size_t row, const Item& item) {
  set_value(batch.priority, row, item.priority);
  set_value(batch.probability, row, item.probability);
  set_value(batch.times_sampled, row, item.times_sampled);
  set_value(batch.table_items, row, item.table_items);
}

void gather(const TransitionSpec& spec, std::span<const Item> items, const BatchView& batch,
            std::int64_t first_row, WindowReader* reader) {
  check(spec, batch, first_row, static_cast<std::int64_t>(items.size()));
  if (items.empty())
    return;
  WindowReader own;
  WindowReader& window = reader != nullptr ? *reader : own;
  const RowLayout& layout = items[0].chunks[0]->layout();
  const std::size_t window_bytes =
      layout.row_bytes * static_cast<std::size_t>(spec.stack + spec.n_step);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i + kItemsAhead < items.size())
      prefetch_window(items[i + kItemsAhead], window_bytes);
    const Item& item = items[i];
    if (!is_readable(spec, item))
      throw std::invalid_argument(
          "item " + std::to_string(item.key) + " of " + std::to_string(item.rows) + " rows, "
          + std::to_string(item.history) + " of them history, is not one of the "
          + Signature(spec).items + "; sample it by columns");
    const std::size_t row = static_cast<std::size_t>(first_row) + i;
    window.open(item);
    batch.key[row] = item.key;
    put_choice(batch, row, item);
    const auto at = [&](std::uint32_t k, std::size_t column) {
      return window.row(k) + layout.columns[column].offset;
    };
    if (spec.is_sequence())
      put_sequence(spec, item.history, batch, row, at);
    else
      put_transition(spec, layout, item.history, item.rows,
                     spec.has_hindsight() ? *hindsight_lane(spec, item.shape.get()) : -1, batch,
                     row, at);
  }
}

} // namespace troupe::replay

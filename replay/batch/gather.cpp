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
void put(std::span<Value> column, std::size_t row, Value value) {
  if (!column.empty())
    column[row] = value;
}

/// Copies frames [newest - stack + 1, newest] of the window. Frames before the window are replaced
/// by its first one.
void stack_frames(const WindowReader& window, std::int64_t newest, int stack,
                  std::size_t frame_bytes, std::byte* out) {
  for (std::int64_t k = newest - stack + 1; k <= newest; ++k, out += frame_bytes)
    std::memcpy(out, window.row(static_cast<std::uint32_t>(std::max<std::int64_t>(0, k))),
                frame_bytes);
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

namespace {

/// Sums the terms of a return in order, beginning with the first step.
class Return {
public:
  explicit Return(double discount) : discount_(discount) {}
  void add(const std::byte* reward, const std::byte* discount) {
    float r = 0;
    float d = 0;
    std::memcpy(&r, reward, sizeof r);
    std::memcpy(&d, discount, sizeof d);
    reward_ += weight_ * static_cast<double>(r);
    weight_ *= discount_ * static_cast<double>(d);
  }
  NStep sums() const { return {static_cast<float>(reward_), static_cast<float>(weight_)}; }

private:
  double discount_;
  double reward_ = 0;
  double weight_ = 1;
};

} // namespace

NStep n_step(const TransitionSpec& spec, std::uint32_t steps, const std::byte* reward,
             const std::byte* discount) {
  Return sum(spec.discount);
  for (std::uint32_t k = 0; k < steps; ++k)
    sum.add(reward + k * sizeof(float), discount + k * sizeof(float));
  return sum.sums();
}

ItemShape transition_shape(std::uint32_t history, std::uint32_t steps, std::uint32_t stack,
                           std::size_t vectors) {
  const Slice after{history + 1, steps};
  ItemShape shape{{{{0, history + 1}, {history + 1 + steps - stack, stack}}}};
  shape.columns.insert(shape.columns.end(), vectors, {{history, 1}, {history + steps, 1}});
  shape.columns.insert(shape.columns.end(), {{{history + 1, 1}}, {after}, {after}});
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

void put_goal(const TransitionSpec& spec, const BatchView& batch, std::size_t row,
              const std::byte* goal) {
  const std::size_t place =
      row * spec.frame.bytes() + static_cast<std::size_t>(spec.hindsight.desired) * sizeof(float);
  const std::size_t bytes = static_cast<std::size_t>(spec.hindsight.size) * sizeof(float);
  std::memcpy(batch.observation.data() + place, goal, bytes);
  std::memcpy(batch.next_observation.data() + place, goal, bytes);
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
  const auto stack = static_cast<std::uint32_t>(spec.stack);
  return item.steps() > stack
         && *item.shape == transition_shape(item.history, item.steps(), stack, spec.vectors.size());
}

void put_choice(const BatchView& batch, std::size_t row, const Item& item) {
  put(batch.priority, row, item.priority);
  put(batch.probability, row, item.probability);
  put(batch.times_sampled, row, item.times_sampled);
  put(batch.table_items, row, item.table_items);
}

void gather(const TransitionSpec& spec, std::span<const Item> items, const BatchView& batch,
            std::int64_t first_row, WindowReader* reader) {
  check(spec, batch, first_row, static_cast<std::int64_t>(items.size()));
  if (items.empty())
    return;
  WindowReader own;
  WindowReader& window = reader != nullptr ? *reader : own;
  const RowLayout& layout = items[0].chunks[0]->layout();
  const std::size_t frame_bytes = layout.columns[kFrame].bytes;
  const RowLayout::Column action = layout.of(kAction);
  const auto put_vectors = [&](const std::vector<std::span<std::byte>>& to, std::size_t row,
                               std::uint32_t newest) {
    for (std::size_t v = 0; v < to.size(); ++v) {
      const RowLayout::Column& column = layout.columns[kVectors + v];
      std::memcpy(to[v].data() + row * column.bytes, window.row(newest) + column.offset,
                  column.bytes);
    }
  };
  const auto action_size = static_cast<std::size_t>(spec.action_size);
  const std::size_t observation_bytes = frame_bytes * static_cast<std::size_t>(spec.stack);
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
    if (spec.is_sequence()) {
      put_sequence(spec, item.history, batch, row, [&](std::uint32_t k, std::size_t column) {
        return window.row(k) + layout.columns[column].offset;
      });
      continue;
    }
    stack_frames(window, item.history, spec.stack, frame_bytes,
                 batch.observation.data() + row * observation_bytes);
    std::memcpy(batch.action.data() + row * action_size,
                window.row(item.history + 1) + action.offset, action.bytes);
    const HindsightColumns columns =
        hindsight_columns(spec.has_hindsight() ? *hindsight_lane(spec, item.shape.get()) : -1);
    Return sum(spec.discount);
    for (std::uint32_t k = item.history + 1; k < item.rows; ++k)
      sum.add(window.row(k) + layout.columns[columns.reward + spec.vectors.size()].offset,
              window.row(k) + layout.columns[columns.discount + spec.vectors.size()].offset);
    const NStep sums = sum.sums();
    batch.reward[row] = sums.reward;
    batch.discount[row] = sums.discount;
    stack_frames(window, std::int64_t{item.rows} - 1, spec.stack, frame_bytes,
                 batch.next_observation.data() + row * observation_bytes);
    if (!spec.vectors.empty()) {
      put_vectors(batch.vectors, row, item.history);
      put_vectors(batch.next_vectors, row, item.rows - 1);
    }
    if (spec.has_hindsight())
      put_goal(spec, batch, row, window.row(1) + layout.columns[columns.goal].offset);
  }
}

} // namespace troupe::replay

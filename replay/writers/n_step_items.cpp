#include "replay/writers/n_step_items.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "replay/batch/gather.hpp"
#include "replay/writers/writer_state.hpp"

namespace troupe::replay {

namespace {

void write_first(Writer& writer, bool first) {
  const RowLayout& layout = writer.layout();
  const std::size_t place = layout.place(kFirst);
  if (layout.columns.size() > place && layout.signature.columns[place].name == "first")
    writer.next(place)[0] = std::byte{first};
}

void write_number(Writer& writer, TransitionColumn column, float value) {
  std::memcpy(writer.next(writer.layout().place(column)).data(), &value, sizeof value);
}

class NStepItems final : public ItemPolicy {
public:
  explicit NStepItems(const TransitionSpec& spec) : spec_(spec) {}

  void before_row(Writer& writer, std::int64_t row) override {
    if (!spec_.running_return)
      return;
    const std::size_t place = writer.layout().place(kRunningReturn);
    double now = 0;
    if (row > 0)
      now = spec_.discount * number(writer.at(writer.rows() - 1, place))
            + number(writer.next(writer.layout().place(kReward)));
    write_number(writer, kRunningReturn, static_cast<float>(now));
  }

  void after_row(Writer& writer, std::int64_t rows, bool last) override {
    const std::int64_t step = rows - 1; // steps of the episode so far
    const std::int64_t n_step = spec_.n_step;
    if (step >= n_step)
      add_item(writer, rows, step - n_step, n_step);
    for (auto start = std::max<std::int64_t>(0, step - n_step + 1); last && start < step; ++start)
      add_item(writer, rows, start, step - start);
  }

private:
  static double number(std::span<const std::byte> from) {
    float value = 0;
    std::memcpy(&value, from.data(), sizeof value);
    return static_cast<double>(value);
  }

  void add_item(Writer& writer, std::int64_t rows, std::int64_t start, std::int64_t steps) {
    const std::int64_t first = std::max<std::int64_t>(0, start - (spec_.stack - 1));
    const auto history = static_cast<std::uint32_t>(start - first);
    writer.add_item({writer.rows() - rows + first, history + steps + 1, history},
                    shape(history, static_cast<std::uint32_t>(steps)));
  }

  /// In a transition with more steps than the stack, neither observation shows the frames in
  /// between.
  ShapePtr shape(std::uint32_t history, std::uint32_t steps) {
    if (steps <= static_cast<std::uint32_t>(spec_.stack))
      return nullptr;
    ShapePtr& made = shapes_[{history, steps}];
    if (!made)
      made = std::make_shared<const ItemShape>(transition_shape(spec_, history, steps));
    return made;
  }

  TransitionSpec spec_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, ShapePtr> shapes_; // by history and steps
};

/// Cuts windows from the stream of rows, whichever episodes they belong to.
class SequenceWindows final : public ItemPolicy {
public:
  explicit SequenceWindows(const TransitionSpec& spec)
      : steps_(spec.sequence_steps), period_(spec.sequence_period), history_(spec.stack - 1) {}

  void after_row(Writer& writer, std::int64_t, bool) override {
    const std::int64_t begin = rows_++ - steps_;
    if (begin < 0 || begin % period_ != 0)
      return;
    const std::int64_t history = std::min(before_ + begin, history_);
    const std::int64_t count = history + steps_ + 1;
    writer.add_item({writer.rows() - count, count, static_cast<std::uint32_t>(history)});
  }

  void restart() override {
    if (rows_ == 0)
      return;
    before_ = std::min(before_ + rows_ - 1, history_);
    rows_ = 1;
  }

  void save_state(std::vector<std::byte>& out) const override {
    put(out, rows_);
    put(out, before_);
  }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    const auto rows = take_value<std::int64_t>(in);
    const auto before = take_value<std::int64_t>(in);
    if (rows < 0 || before < 0 || before > history_)
      refuse("is damaged: its counts make no sense");
    rows_ = rows;
    before_ = before;
    return in;
  }

private:
  std::int64_t steps_;
  std::int64_t period_;
  std::int64_t history_;
  // Rows since the windows were restarted, including rows of a loaded state
  std::int64_t rows_ = 0;
  std::int64_t before_ = 0; // earlier rows that a stack may still need
};

/// Cuts each episode into windows and fills up the last one.
class EpisodeWindows final : public ItemPolicy {
public:
  explicit EpisodeWindows(const TransitionSpec& spec)
      : steps_(spec.sequence_steps), history_(spec.stack - 1) {}

  void after_row(Writer& writer, std::int64_t rows, bool last) override {
    const std::int64_t steps = rows - 1; // of the episode so far
    const std::int64_t missing = (steps_ - steps % steps_) % steps_;
    if (steps == 0 || (missing > 0 && !last))
      return;
    for (std::int64_t i = 0; i < missing; ++i) {
      for (std::size_t column = 0; column < writer.layout().columns.size(); ++column)
        std::ranges::fill(writer.next(column), std::byte{0});
      write_first(writer, true);
      writer.append();
    }
    const std::int64_t history = std::min(steps + missing - steps_, history_);
    const std::int64_t count = history + steps_ + 1;
    writer.add_item({writer.rows() - count, count, static_cast<std::uint32_t>(history)});
  }

private:
  std::int64_t steps_;
  std::int64_t history_;
};

} // namespace

Writer transition_writer(const TransitionSpec& spec, std::uint64_t writer_id, int chunk_rows,
                         const ItemPriority& priority) {
  check(spec);
  if (spec.has_hindsight())
    throw std::invalid_argument("replay transitions: the spec has hindsight of "
                                + std::to_string(spec.hindsight.goals)
                                + " goals; use hindsight_transition_writer()");
  const std::int64_t steps = spec.is_sequence() ? spec.sequence_steps : spec.n_step;
  std::unique_ptr<ItemPolicy> items;
  if (spec.whole_episodes)
    items = std::make_unique<EpisodeWindows>(spec);
  else if (spec.is_sequence())
    items = std::make_unique<SequenceWindows>(spec);
  else
    items = std::make_unique<NStepItems>(spec);
  return Writer(
      spec, writer_id,
      {.chunk_rows = chunk_rows, .reach = std::int64_t{spec.stack} + steps, .priority = priority},
      std::move(items));
}

void clear_extras(Writer& writer) {
  const RowLayout& layout = writer.layout();
  for (std::size_t column = layout.place(kExtras); column < layout.columns.size(); ++column)
    std::ranges::fill(writer.next(column), std::byte{0});
}

void begin_episode(Writer& writer) {
  writer.abandon();
  std::ranges::fill(writer.next(writer.layout().place(kAction)), std::byte{0});
  write_number(writer, kReward, 0);
  write_number(writer, kDiscount, 1);
  write_first(writer, true);
  clear_extras(writer);
  writer.append_step(false);
}

void append_step(Writer& writer, std::span<const float> action, float reward, float discount,
                 bool last) {
  if (writer.episode_rows() == 0)
    throw std::logic_error("replay transitions: append_step() outside an episode; call "
                           "begin_episode() first");
  const std::span<std::byte> place = writer.next(writer.layout().place(kAction));
  if (action.size_bytes() != place.size())
    throw std::invalid_argument("replay transitions: the action has "
                                + std::to_string(action.size()) + " floats, the spec "
                                + std::to_string(place.size() / sizeof(float)));
  std::memcpy(place.data(), action.data(), place.size());
  write_number(writer, kReward, reward);
  write_number(writer, kDiscount, discount);
  write_first(writer, false);
  writer.append_step(last);
}

} // namespace troupe::replay

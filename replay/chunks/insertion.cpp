#include "replay/chunks/insertion.hpp"

#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::replay {

namespace {

constexpr int kMaxWindow = 4096;                                // steps
constexpr std::uint64_t kMaxRowsShown = std::uint64_t{1} << 30; // in all columns together

[[noreturn]] void refuse(const std::string& field, const std::string& value,
                         const std::string& rule) {
  throw std::invalid_argument("transition spec: " + field + " is " + value + " but must be "
                              + rule);
}

void check_range(const char* field, std::int64_t value, int least, int most) {
  if (value < least || value > most)
    refuse(field, std::to_string(value), std::to_string(least) + " to " + std::to_string(most));
}

void check_hindsight(const TransitionSpec& spec) {
  const Hindsight& hindsight = spec.hindsight;
  check_range("hindsight.goals", hindsight.goals, 0, 64);
  if (!spec.has_hindsight())
    return;
  const auto refuse_with = [](const std::string& field, std::int64_t value,
                              const std::string& rule) {
    refuse(field, std::to_string(value), rule + " with hindsight");
  };
  if (spec.is_sequence())
    refuse_with("sequence_steps", spec.sequence_steps, "0");
  if (!spec.vectors.empty())
    refuse_with("vectors", static_cast<std::int64_t>(spec.vectors.size()), "none");
  if (spec.n_step != 1)
    refuse_with("n_step", spec.n_step, "1");
  if (spec.stack != 1)
    refuse_with("stack", spec.stack, "1");
  if (spec.frame.shape.size() != 1 || spec.frame.type != env::ElementType::float32)
    refuse("frame", env::element_name(spec.frame.type), "float32 [n] with hindsight");
  const std::int64_t most = spec.frame.shape[0] - hindsight.size;
  if (hindsight.size < 1 || most < 0)
    refuse_with("hindsight.size", hindsight.size,
                "1 to " + std::to_string(spec.frame.shape[0]) + ", the size of a frame,");
  for (const auto& [field, place] : {std::pair{"hindsight.achieved", hindsight.achieved},
                                     {"hindsight.desired", hindsight.desired}})
    check_range(field, place, 0, static_cast<int>(most));
  check_range("hindsight.episode_steps", hindsight.episode_steps, 1, 1'000'000);
}

} // namespace

void check(const TransitionSpec& spec) {
  if (spec.frame.shape.empty() || spec.frame.shape.size() > 8)
    refuse("frame.shape", "of rank " + std::to_string(spec.frame.shape.size()), "of rank 1 to 8");
  check_range("stack", spec.stack, 1, kMaxWindow);
  check_range("n_step", spec.n_step, 1, kMaxWindow);
  check_range("action_size", spec.action_size, 1, 1 << 20);
  if (!spec.action_choices.empty()
      && spec.action_choices.size() != static_cast<std::size_t>(spec.action_size))
    refuse("action_choices", std::to_string(spec.action_choices.size()) + " numbers",
           "as many as action_size, or none");
  if (!(spec.discount >= 0 && spec.discount <= 1))
    refuse("discount", std::to_string(spec.discount), "0 to 1");
  check_range("sequence_steps", spec.sequence_steps, 0, kMaxWindow);
  check_range("sequence_period", spec.sequence_period, 1, kMaxWindow);
  if (!spec.is_sequence() && spec.whole_episodes)
    refuse("whole_episodes", "true", "false without sequence_steps");
  if (!spec.is_sequence() && !spec.extras.empty())
    refuse("extras", std::to_string(spec.extras.size()) + " columns", "empty of transitions");
  if (spec.running_return && (spec.is_sequence() || spec.has_hindsight()))
    refuse("running_return", "true", "false of sequences and with hindsight");
  check_hindsight(spec);
  check(Signature(spec));
  for (const env::ArraySpec& vector : spec.vectors)
    if (vector.type != env::ElementType::float32)
      refuse("vectors '" + vector.name + "'", env::element_name(vector.type), "float32");
}

bool fits(const ItemShape& shape, std::size_t columns, std::uint32_t rows) {
  if (shape.columns.size() != columns)
    return false;
  std::uint64_t shown = 0;
  std::size_t slices_of_all = 0;
  for (const std::vector<Slice>& slices : shape.columns) {
    if ((slices_of_all += slices.size()) > kMostSlices)
      return false;
    for (const Slice& slice : slices) {
      shown += slice.count;
      if (std::uint64_t{slice.first} + slice.count > rows || shown > kMaxRowsShown)
        return false;
    }
  }
  return true;
}

std::uint32_t rows_shown(const ItemShape* shape, std::size_t column, std::uint32_t rows) {
  if (shape == nullptr)
    return rows;
  const std::vector<Slice>& slices = shape->columns[column];
  return std::accumulate(slices.begin(), slices.end(), std::uint32_t{0},
                         [](std::uint32_t sum, const Slice& slice) { return sum + slice.count; });
}

} // namespace troupe::replay

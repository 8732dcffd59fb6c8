#include "replay/recordings/episode.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "replay/writers/n_step_items.hpp"

namespace troupe::replay {

namespace {

std::shared_ptr<const RowLayout> layout_of(const RecordingSpec& spec) {
  const TransitionSpec transitions = transitions_of(spec);
  check(transitions);
  Signature rows(transitions);
  if (spec.log_probability)
    rows.columns.push_back({"log_probability", env::ElementType::float32, {}});
  return std::make_shared<const RowLayout>(rows);
}

} // namespace

RecordingSpec recording_of(const TransitionSpec& transitions) {
  return {.frame = transitions.frame,
          .vectors = transitions.vectors,
          .stack = transitions.stack,
          .action_size = transitions.action_size,
          .action_choices = transitions.action_choices};
}

TransitionSpec transitions_of(const RecordingSpec& recording) {
  return {.frame = recording.frame,
          .vectors = recording.vectors,
          .stack = recording.stack,
          .action_size = recording.action_size,
          .action_choices = recording.action_choices};
}

Episode::Episode(const RecordingSpec& spec)
    : layout_(layout_of(spec)),
      log_probability_(spec.log_probability ? layout_->columns.size() - 1 : 0),
      choices_(spec.action_choices) {}

std::byte* Episode::add_row() {
  bytes_.resize(static_cast<std::size_t>(rows_ + 1) * layout_->row_bytes);
  return bytes_.data() + static_cast<std::size_t>(rows_++) * layout_->row_bytes;
}

void Episode::begin(std::span<const std::byte> frame, Vectors vectors) {
  rows_ = 0;
  bytes_.clear();
  const std::vector<float> none(layout_->of(kAction).bytes / sizeof(float));
  append(none, 0, 1, frame, vectors, has_log_probability() ? std::optional(0.0F) : std::nullopt);
}

void Episode::append(std::span<const float> action, float reward, float discount,
                     std::span<const std::byte> frame, Vectors vectors,
                     std::optional<float> log_probability) {
  const std::size_t action_bytes = layout_->of(kAction).bytes;
  const std::size_t frame_bytes = layout_->of(kFrame).bytes;
  if (action.size_bytes() != action_bytes || frame.size() != frame_bytes)
    throw std::invalid_argument(
        "an episode's step has " + std::to_string(action.size()) + " numbers of an action and "
        + std::to_string(frame.size()) + " bytes of a frame; it needs "
        + std::to_string(action_bytes / sizeof(float)) + " and " + std::to_string(frame_bytes));
  bool fits = vectors.size() == layout_->vectors;
  for (std::size_t i = 0; fits && i < vectors.size(); ++i)
    fits = vectors[i].size() == layout_->columns[kVectors + i].bytes;
  if (!fits)
    throw std::invalid_argument("an episode's step has " + std::to_string(vectors.size())
                                + " vectors beside its frame; it needs "
                                + std::to_string(layout_->vectors) + " of the sizes in its spec");
  if (log_probability.has_value() != has_log_probability())
    throw std::invalid_argument(std::string("an episode's step has ")
                                + (log_probability ? "a" : "no") + " log-probability, but its spec "
                                + (log_probability ? "has none" : "has one"));
  const bool finite = std::isfinite(reward) && std::isfinite(discount)
                      && std::isfinite(log_probability.value_or(0))
                      && std::ranges::all_of(action, [](float x) { return std::isfinite(x); });
  if (!finite)
    throw std::invalid_argument("step " + std::to_string(rows_)
                                + " of an episode has a NaN or infinity in its action, reward, "
                                  "discount or log-probability; record finite numbers");
  if (rows_ > kMostSteps)
    throw std::invalid_argument("an episode has more than " + std::to_string(kMostSteps)
                                + " steps; give its environment a time limit");
  std::byte* row = add_row();
  std::memcpy(row + layout_->of(kFrame).offset, frame.data(), frame.size());
  for (std::size_t i = 0; i < vectors.size(); ++i)
    std::memcpy(row + layout_->columns[kVectors + i].offset, vectors[i].data(), vectors[i].size());
  std::byte* const to = row + layout_->of(kAction).offset;
  for (std::size_t i = 0; i < action.size(); ++i) {
    const bool chooses = !choices_.empty() && choices_[i] > 0;
    const float played = chooses ? action[i] : std::clamp(action[i], -1.0F, 1.0F);
    std::memcpy(to + i * sizeof(float), &played, sizeof(float));
  }
  std::memcpy(row + layout_->of(kReward).offset, &reward, sizeof reward);
  std::memcpy(row + layout_->of(kDiscount).offset, &discount, sizeof discount);
  if (log_probability)
    std::memcpy(row + layout_->columns[log_probability_].offset, &*log_probability, sizeof(float));
}

std::span<const std::byte> Episode::column(std::int64_t row, TransitionColumn column) const {
  return at(row, layout_->place(column));
}

std::span<const std::byte> Episode::at(std::int64_t row, std::size_t position) const {
  if (row < 0 || row >= rows_)
    throw std::out_of_range("row " + std::to_string(row) + " of an episode of "
                            + std::to_string(rows_));
  const RowLayout::Column& place = layout_->columns[position];
  return std::span(bytes_).subspan(
      static_cast<std::size_t>(row) * layout_->row_bytes + place.offset, place.bytes);
}

std::vector<float> Episode::action(std::int64_t row) const {
  const auto bytes = column(row, kAction);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

float Episode::number(std::int64_t row, std::size_t place) const {
  float value = 0;
  std::memcpy(&value, at(row, place).data(), sizeof value);
  return value;
}

double Episode::total_reward() const {
  double sum = 0;
  for (std::int64_t row = 1; row < rows_; ++row)
    sum += reward(row);
  return sum;
}

void Episode::write(Writer& writer) const {
  for (std::int64_t row = 0; row < rows_; ++row) {
    std::ranges::copy(frame(row), writer.next(kFrame).begin());
    for (std::size_t i = 0; i < vectors(); ++i)
      std::ranges::copy(vector(row, i), writer.next(kVectors + i).begin());
    if (row == 0) {
      begin_episode(writer);
      continue;
    }
    clear_extras(writer);
    append_step(writer, action(row), reward(row), discount(row), row + 1 == rows_);
  }
}

namespace {

/// Returns the column of the extra kPlayedLogProbability. Throws std::invalid_argument if there is
/// none.
std::size_t log_probability_of(const RowLayout& layout) {
  const auto& columns = layout.signature.columns;
  const auto found = std::ranges::find(columns, kPlayedLogProbability, &env::ArraySpec::name);
  if (found == columns.end() || found->bytes() != sizeof(float))
    throw std::invalid_argument(std::string("the rows to record have no number ")
                                + kPlayedLogProbability);
  return static_cast<std::size_t>(found - columns.begin());
}

} // namespace

void EpisodeJoiner::add(const Insertion& insertion,
                        const std::function<void(const Episode&)>& ended) {
  for (const ChunkRows& rows : insertion.rows)
    for (std::uint32_t i = rows.first; i < rows.first + rows.count; ++i) {
      const RowLayout& layout = rows.chunk->layout();
      const auto at = [&](std::size_t column) {
        const RowLayout::Column& where = layout.columns[column];
        return std::span(rows.chunk->row(i) + where.offset, where.bytes);
      };
      const auto place = [&](TransitionColumn column) { return at(layout.place(column)); };
      std::vector<std::span<const std::byte>> vectors;
      for (std::size_t k = 0; k < layout.vectors; ++k)
        vectors.emplace_back(at(kVectors + k));
      const std::uint8_t flags = rows.chunk->flags(i);
      if ((flags & Chunk::kFirst) != 0) {
        if (open_.steps() > 0)
          ended(open_);
        open_.begin(place(kFrame), vectors);
        continue;
      }
      std::vector<float> action(place(kAction).size() / sizeof(float));
      float reward = 0;
      float discount = 0;
      std::memcpy(action.data(), place(kAction).data(), place(kAction).size());
      std::memcpy(&reward, place(kReward).data(), sizeof reward);
      std::memcpy(&discount, place(kDiscount).data(), sizeof discount);
      std::optional<float> log_probability;
      if (open_.has_log_probability())
        std::memcpy(&log_probability.emplace(), at(log_probability_of(layout)).data(),
                    sizeof(float));
      open_.append(action, reward, discount, place(kFrame), vectors, log_probability);
      if ((flags & Chunk::kLast) != 0) {
        ended(open_);
        open_.clear();
      }
    }
}

} // namespace troupe::replay

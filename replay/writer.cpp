#include "replay/writer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace troupe::replay {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxChunkBytes = std::size_t{1} << 30;

std::uint32_t rows_per_chunk(const TransitionSpec& spec, const RowLayout& layout, int chunk_steps) {
  const auto least = static_cast<std::size_t>(spec.stack + spec.n_step);
  if (chunk_steps == 0)
    return static_cast<std::uint32_t>(
        std::max(least, std::clamp<std::size_t>(kChunkBytes / layout.row_bytes, 16, 1024)));
  const auto steps = static_cast<std::size_t>(std::max(chunk_steps, 0));
  if (steps < least || steps * layout.row_bytes > kMaxChunkBytes)
    throw std::invalid_argument("replay chunk_steps is " + std::to_string(chunk_steps)
                                + " but must be at least stack + n_step = " + std::to_string(least)
                                + " and give a chunk of at most 1 GiB; 0 lets the writer choose");
  return static_cast<std::uint32_t>(steps);
}

} // namespace

TransitionWriter::TransitionWriter(const TransitionSpec& spec, std::uint64_t writer_id,
                                   int chunk_steps)
    : spec_((check(spec), spec)),
      layout_(spec),
      writer_id_(writer_id),
      capacity_(rows_per_chunk(spec, layout_, chunk_steps)) {}

void TransitionWriter::new_chunk() {
  if (current_ && taken_ < filled_)
    full_rows_.push_back({current_, taken_, filled_ - taken_});
  auto chunk = std::make_shared<Chunk>(spec_, next_chunk_, capacity_);
  ++next_chunk_;
  previous_ = std::move(current_);
  current_ = std::move(chunk);
  filled_ = 0;
  taken_ = 0;
}

std::span<std::byte> TransitionWriter::next_frame() {
  if (!current_ || filled_ == capacity_)
    new_chunk();
  return {current_->row(filled_), layout_.frame_bytes};
}

void TransitionWriter::finish_row(std::span<const float> action, float reward, float discount,
                                  std::uint8_t flags) {
  std::byte* row = next_frame().data();
  // The gaps are zero so that equal steps are equal bytes in checkpoints and messages.
  std::memset(row + layout_.frame_bytes, 0, layout_.action - layout_.frame_bytes);
  if (action.empty())
    std::memset(row + layout_.action, 0, layout_.action_size * sizeof(float));
  else
    std::memcpy(row + layout_.action, action.data(), layout_.action_size * sizeof(float));
  std::memcpy(row + layout_.reward, &reward, sizeof reward);
  std::memcpy(row + layout_.discount, &discount, sizeof discount);
  const std::size_t end = layout_.discount + sizeof discount;
  std::memset(row + end, 0, layout_.row_bytes - end);
  current_->flags()[filled_] = flags;
  ++filled_;
}

void TransitionWriter::begin() {
  finish_row({}, 0, 1, Chunk::kFirst);
  episode_step_ = 0;
}

void TransitionWriter::append(std::span<const float> action, float reward, float discount,
                              bool last) {
  if (episode_step_ < 0)
    throw std::logic_error("TransitionWriter: append() outside an episode; call begin() first");
  if (action.size() != layout_.action_size)
    throw std::invalid_argument("TransitionWriter: the action has " + std::to_string(action.size())
                                + " floats, the spec " + std::to_string(layout_.action_size));
  finish_row(action, reward, discount, last ? Chunk::kLast : 0);
  ++episode_step_;
  if (episode_step_ >= spec_.n_step)
    add_item(episode_step_ - spec_.n_step, spec_.n_step);
  if (!last)
    return;
  for (auto start = std::max<std::int64_t>(0, episode_step_ - spec_.n_step + 1);
       start < episode_step_; ++start)
    add_item(start, episode_step_ - start);
  episode_step_ = -1;
}

void TransitionWriter::add_item(std::int64_t start, std::int64_t steps) {
  const std::int64_t first = std::max<std::int64_t>(0, start - (spec_.stack - 1));
  const std::int64_t begin = std::int64_t{filled_} - 1 - (episode_step_ - first);
  Item& item = items_.emplace_back();
  item.key = next_item_++;
  item.history = static_cast<std::uint16_t>(start - first);
  item.steps = static_cast<std::uint16_t>(steps);
  if (begin >= 0) {
    item.chunks[0] = current_;
    item.begin = static_cast<std::uint32_t>(begin);
    return;
  }
  item.chunks[0] = previous_;
  item.begin = static_cast<std::uint32_t>(std::int64_t{capacity_} + begin);
  if (item.begin + item.rows() > capacity_)
    item.chunks[1] = current_;
}

InsertionPtr TransitionWriter::take() {
  if (items_.empty())
    return nullptr;
  auto insertion = std::make_shared<Insertion>();
  insertion->writer_id = writer_id_;
  insertion->sequence = ++sequence_;
  insertion->rows = std::move(full_rows_);
  full_rows_.clear();
  if (taken_ < filled_)
    insertion->rows.push_back({current_, taken_, filled_ - taken_});
  taken_ = filled_;
  const std::size_t usual = items_.size();
  insertion->items = std::move(items_);
  items_ = {};
  items_.reserve(usual);
  return insertion;
}

} // namespace troupe::replay

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "replay/gather.hpp"
#include "replay/writer.hpp"
#include "replay/writer_state.hpp"

namespace troupe::replay {

TransitionWriter::TransitionWriter(const TransitionSpec& spec, std::uint64_t writer_id,
                                   int chunk_steps, ItemPriority priority)
    : spec_((check(spec), spec)),
      priority_(std::move(priority)),
      writer_(spec, writer_id,
              {.chunk_rows = chunk_steps, .reach = std::int64_t{spec.stack} + spec.n_step}) {}

void TransitionWriter::finish_row(std::span<const float> action, float reward, float discount,
                                  std::uint8_t flags) {
  const std::span<std::byte> place = writer_.next(kAction);
  if (action.empty())
    std::memset(place.data(), 0, place.size());
  else
    std::memcpy(place.data(), action.data(), place.size());
  std::memcpy(writer_.next(kReward).data(), &reward, sizeof reward);
  std::memcpy(writer_.next(kDiscount).data(), &discount, sizeof discount);
  writer_.append(flags);
}

void TransitionWriter::begin() {
  finish_row({}, 0, 1, Chunk::kFirst);
  episode_step_ = 0;
}

void TransitionWriter::append(std::span<const float> action, float reward, float discount,
                              bool last) {
  if (episode_step_ < 0)
    throw std::logic_error("TransitionWriter: append() outside an episode; call begin() first");
  if (action.size() != static_cast<std::size_t>(spec_.action_size))
    throw std::invalid_argument("TransitionWriter: the action has " + std::to_string(action.size())
                                + " floats, the spec " + std::to_string(spec_.action_size));
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
  const auto history = static_cast<std::uint32_t>(start - first);
  const std::int64_t episode = writer_.rows() - 1 - episode_step_; // its first row
  const Window window{episode + first, history + steps + 1, history};
  writer_.add_item(window.first, window.count, history,
                   shape(history, static_cast<std::uint32_t>(steps)),
                   priority_ ? priority_(writer_, window) : 1);
}

/// Of a long n-step return the frames in between are shown by neither observation.
ShapePtr TransitionWriter::shape(std::uint32_t history, std::uint32_t steps) {
  const auto stack = static_cast<std::uint32_t>(spec_.stack);
  if (steps <= stack)
    return nullptr;
  ShapePtr& made = shapes_[{history, steps}];
  if (!made)
    made = std::make_shared<const ItemShape>(transition_shape(history, steps, stack));
  return made;
}

void TransitionWriter::save_state(std::vector<std::byte>& out) const {
  save_episode(out, episode_step_ + 1, writer_);
}

std::span<const std::byte> TransitionWriter::load_state(std::span<const std::byte> in) {
  episode_step_ = load_episode(in, writer_, std::int64_t{spec_.stack} + spec_.n_step) - 1;
  return in;
}

} // namespace troupe::replay

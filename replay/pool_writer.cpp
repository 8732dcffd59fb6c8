#include "replay/pool_writer.hpp"

#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::replay {

namespace {

[[noreturn]] void refuse_size(const std::string& what, std::size_t have, std::size_t wanted) {
  throw std::invalid_argument("replay pool writer: " + what + " is " + std::to_string(have)
                              + " but must be " + std::to_string(wanted));
}

} // namespace

PoolWriter::PoolWriter(const env::EnvironmentSpec& environment, int environments,
                       const TransitionSpec& spec, std::uint64_t first_id, int chunk_steps,
                       const ItemPriority& priority)
    : action_size_(environment.action.size()) {
  if (environment.observation_bytes() != spec.frame.bytes())
    refuse_size("the transitions' frame (bytes)", spec.frame.bytes(),
                environment.observation_bytes());
  if (static_cast<std::size_t>(spec.action_size) != action_size_)
    refuse_size("the transitions' action size", static_cast<std::size_t>(spec.action_size),
                action_size_);
  for (int i = 0; i < environments; ++i) {
    writers_.emplace_back(spec, first_id + static_cast<std::uint64_t>(i), chunk_steps, priority);
    places_.push_back(writers_.back().next_frame().data());
  }
}

void PoolWriter::append(std::span<const float> actions, const env::PoolBatch& batch) {
  if (actions.size() != batch.rows() * action_size_)
    refuse_size("the number of actions' floats", actions.size(), batch.rows() * action_size_);
  for (const std::int32_t environment : batch.environments)
    if (environment < 0 || static_cast<std::size_t>(environment) >= writers_.size())
      throw std::invalid_argument("replay pool writer: environment " + std::to_string(environment)
                                  + " is not one of the " + std::to_string(writers_.size())
                                  + " it writes for");
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    if (batch.statuses[row] != env::RowStatus::ok)
      continue; // its next row begins an episode, in the same place
    const auto i = static_cast<std::size_t>(batch.environments[row]);
    TransitionWriter& writer = writers_[i];
    if (batch.step_types[row] == env::StepType::first)
      writer.begin();
    else
      writer.append(
          actions.subspan(row * action_size_, action_size_), static_cast<float>(batch.rewards[row]),
          static_cast<float>(batch.discounts[row]), batch.step_types[row] == env::StepType::last);
    places_[i] = writer.next_frame().data();
  }
}

std::int64_t PoolWriter::pending_items() const {
  return std::accumulate(writers_.begin(), writers_.end(), std::int64_t{0},
                         [](std::int64_t sum, const TransitionWriter& writer) {
                           return sum + writer.pending_items();
                         });
}

void PoolWriter::take(std::vector<InsertionPtr>& out) {
  for (TransitionWriter& writer : writers_)
    if (InsertionPtr made = writer.take())
      out.push_back(std::move(made));
}

void PoolWriter::save_state(std::vector<std::byte>& out) const {
  for (const TransitionWriter& writer : writers_)
    writer.save_state(out);
}

std::span<const std::byte> PoolWriter::load_state(std::span<const std::byte> in) {
  std::vector<TransitionWriter> fresh = writers_;
  for (TransitionWriter& writer : fresh)
    in = writer.load_state(in);
  writers_ = std::move(fresh);
  for (std::size_t i = 0; i < writers_.size(); ++i)
    places_[i] = writers_[i].next_frame().data();
  return in;
}

} // namespace troupe::replay

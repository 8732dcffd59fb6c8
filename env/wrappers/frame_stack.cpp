#include "env/wrappers/frame_stack.hpp"

#include <cstring>
#include <stdexcept>

#include "env/state_bytes.hpp"
#include "env/wrappers/checks.hpp"

namespace troupe::env {

FrameStack::FrameStack(std::unique_ptr<Environment> wrapped, int count)
    : Wrapper(std::move(wrapped)), frame_bytes_(spec_.observation_bytes()) {
  if (count < 1 || count > 64)
    throw std::invalid_argument("frame_stack: " + std::to_string(count)
                                + " is out of range; it must be from 1 to 64");
  if (spec_.observations.size() != 1 || spec_.observations[0].shape.empty())
    throw std::invalid_argument("environment " + spec_.name
                                + ": frames are stacked along the first"
                                  " axis of one observation; flatten the states or use pixels");
  spec_.observations[0].shape[0] *= count;
  spec_.frame_stack *= count;
  stack_.resize(frame_bytes_ * static_cast<std::size_t>(count));
}

std::span<std::byte> FrameStack::newest(std::span<std::byte> stack) const {
  return stack.subspan(stack.size() - frame_bytes_);
}

TimeStep FrameStack::reset(std::uint64_t seed, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  const TimeStep result = inner().reset(seed, newest(stack_));
  for (std::size_t at = 0; at + frame_bytes_ < stack_.size(); at += frame_bytes_)
    std::memcpy(stack_.data() + at, newest(stack_).data(), frame_bytes_);
  std::memcpy(observation.data(), stack_.data(), stack_.size());
  return result;
}

TimeStep FrameStack::step(std::span<const double> action, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  const TimeStep result = inner().step(action, newest(observation));
  const std::size_t older = stack_.size() - frame_bytes_;
  std::memcpy(observation.data(), stack_.data() + frame_bytes_, older);
  std::memcpy(stack_.data(), observation.data(), stack_.size());
  return result;
}

void FrameStack::save_state(std::vector<std::byte>& out) const {
  save_array<std::byte>(out, stack_);
  Wrapper::save_state(out);
}

std::span<const std::byte> FrameStack::load_state(std::span<const std::byte> in) {
  std::vector<std::byte> stack(stack_.size());
  load_array<std::byte>(in, stack, "the frame stack");
  in = Wrapper::load_state(in);
  stack_ = std::move(stack);
  return in;
}

} // namespace troupe::env

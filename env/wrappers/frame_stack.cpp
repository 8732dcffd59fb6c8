#include "env/wrappers/frame_stack.hpp"

#include <cstring>
#include <stdexcept>

#include "env/checks.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {

FrameStack::FrameStack(std::unique_ptr<Environment> wrapped, int count)
    : Wrapper(std::move(wrapped)), count_(static_cast<std::size_t>(count)) {
  if (count < 1 || count > 64)
    throw std::invalid_argument("frame_stack: " + std::to_string(count)
                                + " is out of range; it must be from 1 to 64");
  for (std::size_t a = 0; a < spec_.observations.size(); ++a) {
    ArraySpec& array = spec_.observations[a];
    if (!spec_.stacks(a))
      continue;
    if (array.shape.empty())
      throw std::invalid_argument("environment " + spec_.name + ": observation '" + array.name
                                  + "' is one number without an axis to stack frames along;"
                                    " flatten the states, or keep frame_stack at 1");
    array.shape[0] *= count;
  }
  if (count > 1)
    spec_.goal = {};
  spec_.frame_stack *= count;
  for (std::size_t a = 0; a < spec_.observations.size(); ++a)
    parts_.push_back({inner_spec().observations[a].bytes(), inner_spec().observation_offset(a),
                      spec_.observation_offset(a), spec_.stacks(a) ? count_ : 1});
  frame_.resize(inner_spec().observation_bytes());
  stack_.resize(spec_.observation_bytes());
}

void FrameStack::keep_newest() {
  for (const Part& part : parts_)
    std::memcpy(stack_.data() + part.to + (part.frames - 1) * part.bytes, frame_.data() + part.from,
                part.bytes);
}

TimeStep FrameStack::reset(std::uint64_t seed, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  const TimeStep result = inner().reset(seed, frame_);
  keep_newest();
  for (const Part& part : parts_)
    for (std::size_t k = 0; k + 1 < part.frames; ++k)
      std::memcpy(stack_.data() + part.to + k * part.bytes, frame_.data() + part.from, part.bytes);
  std::memcpy(observation.data(), stack_.data(), stack_.size());
  return result;
}

TimeStep FrameStack::step(std::span<const double> action, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  const TimeStep result = inner().step(action, frame_);
  for (const Part& part : parts_)
    std::memmove(stack_.data() + part.to, stack_.data() + part.to + part.bytes,
                 (part.frames - 1) * part.bytes);
  keep_newest();
  std::memcpy(observation.data(), stack_.data(), stack_.size());
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

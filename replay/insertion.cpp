#include "replay/insertion.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace troupe::replay {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 28;
constexpr int kMaxWindow = 4096; // steps; items count in 16 bits

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

[[noreturn]] void refuse(const std::string& field, const std::string& value,
                         const std::string& rule) {
  throw std::invalid_argument("transition spec: " + field + " is " + value + " but must be "
                              + rule);
}

void check_range(const char* field, int value, int least, int most) {
  if (value < least || value > most)
    refuse(field, std::to_string(value), std::to_string(least) + " to " + std::to_string(most));
}

} // namespace

void check(const TransitionSpec& spec) {
  if (spec.frame.shape.empty() || spec.frame.shape.size() > 8)
    refuse("frame.shape", "of rank " + std::to_string(spec.frame.shape.size()), "of rank 1 to 8");
  std::size_t bytes = env::element_bytes(spec.frame.type);
  for (const std::int64_t n : spec.frame.shape) {
    if (n < 1 || static_cast<std::size_t>(n) > kMaxFrameBytes / bytes)
      refuse("frame.shape", "with an extent of " + std::to_string(n),
             "of positive extents and at most 256 MiB");
    bytes *= static_cast<std::size_t>(n);
  }
  check_range("stack", spec.stack, 1, kMaxWindow);
  check_range("n_step", spec.n_step, 1, kMaxWindow);
  check_range("action_size", spec.action_size, 1, 1 << 20);
  if (!(spec.discount >= 0 && spec.discount <= 1))
    refuse("discount", std::to_string(spec.discount), "0 to 1");
}

RowLayout::RowLayout(const TransitionSpec& spec)
    : frame_bytes(spec.frame.bytes()),
      action_size(static_cast<std::size_t>(spec.action_size)),
      action(round_up(frame_bytes, sizeof(float))),
      reward(action + action_size * sizeof(float)),
      discount(reward + sizeof(float)),
      row_bytes(round_up(discount + sizeof(float), 16)) {}

Chunk::Chunk(const TransitionSpec& spec, std::uint64_t id, std::uint32_t capacity)
    : id_(id),
      capacity_(capacity),
      layout_(spec),
      data_(static_cast<std::byte*>(
          std::aligned_alloc(kAlignment, round_up(capacity * layout_.row_bytes, kAlignment)))),
      flags_(std::make_unique<std::uint8_t[]>(capacity)) {
  if (!data_)
    throw std::bad_alloc();
}

std::size_t Chunk::bytes() const {
  return round_up(capacity_ * layout_.row_bytes, kAlignment) + capacity_ + sizeof(Chunk);
}

const float* Chunk::action(std::size_t i) const {
  return reinterpret_cast<const float*>(row(i) + layout_.action);
}

float Chunk::reward(std::size_t i) const {
  float value = 0;
  std::memcpy(&value, row(i) + layout_.reward, sizeof value);
  return value;
}

float Chunk::discount(std::size_t i) const {
  float value = 0;
  std::memcpy(&value, row(i) + layout_.discount, sizeof value);
  return value;
}

void Chunk::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

} // namespace troupe::replay

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::learner {

/// The acting side of an agent: batched inference from a flat float32 parameter buffer. One thread
/// at a time.
class Policy {
public:
  virtual ~Policy() = default;

  virtual std::int64_t parameter_count() const = 0;
  /// Copies `parameters` in; throws std::invalid_argument on a wrong count and on a value that is
  /// not finite.
  virtual void load(std::span<const float> parameters) = 0;
  /// observations: [batch] observations back to back in the environment's own format (uint8 pixels
  /// or float32 states); actions: [batch, action_size] in [-1, 1], the mode without noise.
  virtual void act(std::span<const std::byte> observations, std::int64_t batch,
                   std::span<float> actions) = 0;
};

} // namespace troupe::learner

#include "learner/nn/kernels/normal.hpp"

#include <cmath>
#include <numbers>

#include <torch/types.h>

namespace troupe::learner {

at::Tensor normal(Random& random, at::IntArrayRef shape) {
  at::Tensor made = at::empty(shape, at::kFloat);
  auto* to = made.mutable_data_ptr<float>();
  const auto uniform = [&] { return static_cast<float>(random.next() >> 40) * 0x1.0p-24F; };
  for (std::int64_t i = 0; i < made.numel(); i += 2) {
    const float radius = std::sqrt(-2 * std::log(1 - uniform()));
    const float angle = 2 * std::numbers::pi_v<float> * uniform();
    to[i] = radius * std::cos(angle);
    if (i + 1 < made.numel())
      to[i + 1] = radius * std::sin(angle);
  }
  return made;
}

} // namespace troupe::learner

#include "learner/nn/two_hot.hpp"

#include <torch/types.h>

namespace troupe::learner {

at::Tensor two_hot(const at::Tensor& values) {
  constexpr double kGrid = 10;
  const at::Tensor grid =
      at::linspace(-kGrid, kGrid, kRewardBins, values.options().dtype(at::kDouble));
  const at::Tensor bins = (grid.sign() * grid.abs().expm1()).to(values.scalar_type());
  const at::Tensor within = at::minimum(at::maximum(values, bins[0]), bins[kRewardBins - 1]);
  const at::Tensor above = at::searchsorted(bins, within.contiguous()).clamp(1, kRewardBins - 1);
  const at::Tensor low = bins.index_select(0, above - 1);
  const at::Tensor share = (within - low) / (bins.index_select(0, above) - low);
  at::Tensor made = at::zeros({values.size(0), kRewardBins}, values.options());
  made.scatter_(1, (above - 1).unsqueeze(1), (1 - share).unsqueeze(1));
  made.scatter_(1, above.unsqueeze(1), share.unsqueeze(1));
  return made;
}

} // namespace troupe::learner

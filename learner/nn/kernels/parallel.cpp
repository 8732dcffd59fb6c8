// The only file compiled with OpenMP. Without it, at::parallel_for runs on a single thread.
#include "learner/nn/kernels/parallel.hpp"

#include <ATen/Parallel.h>

namespace troupe::learner {

void over_threads(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& part) {
  at::parallel_for(0, count, grain, part);
}

} // namespace troupe::learner

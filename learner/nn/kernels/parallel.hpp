#pragma once

#include <cstdint>
#include <functional>

namespace troupe::learner {

/// Calls part(first, last) over [0, count) in pieces of at least `grain`, on the LibTorch threads
/// of the calling thread (at::set_num_threads). Rethrows an exception of `part`.
void over_threads(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& part);

} // namespace troupe::learner

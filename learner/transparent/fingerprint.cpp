#include "learner/transparent/fingerprint.hpp"

#include <xxhash.h>

namespace troupe::learner::transparent {

std::uint64_t fingerprint(const at::Tensor& tensor) {
  return XXH3_64bits(tensor.const_data_ptr(), static_cast<std::size_t>(tensor.nbytes()));
}

} // namespace troupe::learner::transparent

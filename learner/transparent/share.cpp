#include "learner/transparent/share.hpp"

namespace troupe::learner::transparent {

std::vector<std::size_t> share_of(const std::vector<std::size_t>& batch, int rank, int size,
                                  Tail tail) {
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t length =
      tail == Tail::pad ? (batch.size() + ranks - 1) / ranks : batch.size() / ranks;
  std::vector<std::size_t> share(length);
  for (std::size_t i = 0; i < length; ++i)
    share[i] = batch[(static_cast<std::size_t>(rank) * length + i) % batch.size()];
  return share;
}

} // namespace troupe::learner::transparent

#pragma once

#include <cstddef>
#include <vector>

#include "learner/transparent/settings.hpp"

namespace troupe::learner::transparent {

/// The part of one batch of all ranks, [samples], that rank `rank` of `size` trains on: contiguous,
/// of the same length on every rank. If the samples do not divide by the ranks, the last parts
/// continue with the batch's first samples (Tail::pad), or the samples left over are left out
/// (Tail::drop; then a part may be empty).
std::vector<std::size_t> share_of(const std::vector<std::size_t>& batch, int rank, int size,
                                  Tail tail);

} // namespace troupe::learner::transparent

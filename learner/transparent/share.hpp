#pragma once

#include <cstddef>
#include <vector>

#include "learner/transparent/settings.hpp"

namespace troupe::learner::transparent {

/// Returns the part of a batch of all ranks, [samples], on which rank `rank` of `size` trains. It
/// is contiguous and has the same length on every rank. If the number of samples is not divisible
/// by the number of ranks, the last parts are filled up with the batch's first samples (Tail::pad),
/// or the remaining samples are left out (Tail::drop; a part may then be empty).
std::vector<std::size_t> share_of(const std::vector<std::size_t>& batch, int rank, int size,
                                  Tail tail);

} // namespace troupe::learner::transparent

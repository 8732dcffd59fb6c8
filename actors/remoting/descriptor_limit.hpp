#pragma once

#include <cstdint>

namespace troupe::actors {

/// Raises this process's soft limit on open files to the hard limit and returns it. A head has a
/// connection to every node and process, and the soft limit is often 1,024. Child processes inherit
/// the limit.
std::uint64_t raise_descriptor_limit();

} // namespace troupe::actors

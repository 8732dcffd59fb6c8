#pragma once

#include <cstdint>

namespace troupe::actors {

/// Raises this process's soft limit of open files to the hard limit and returns it: a head has a
/// connection to every node and process, and the soft limit is often 1,024. Child processes inherit
/// it.
std::uint64_t raise_descriptor_limit();

} // namespace troupe::actors

#pragma once

#include <cstdint>

namespace troupe::actors {

/// Lets this process open as many files as it may at all: a head has a connection to every node and
/// to every process, and many systems begin with a soft limit of 1,024. Gives the limit that holds
/// then. Processes that it starts have the same.
std::uint64_t raise_descriptor_limit();

} // namespace troupe::actors

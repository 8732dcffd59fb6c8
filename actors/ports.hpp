#pragma once

#include <cstdint>

namespace troupe::actors {

/// A TCP port of the loopback interface that is free now. Throws std::runtime_error when there is
/// none.
std::uint16_t reserve_port();

} // namespace troupe::actors

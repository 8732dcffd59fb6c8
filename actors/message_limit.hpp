#pragma once

#include <cstddef>

#include <sys/socket.h>

#include <caf/io/network/native_socket.hpp>
#include <caf/io/receive_policy.hpp>

namespace troupe::actors {

/// Of one message between actor systems. CAF takes the length that a peer announces and makes room
/// for it, up to 4 GiB, before a byte of it has come; what is long here goes over the data plane.
constexpr std::size_t kMostMessageBytes = std::size_t{64} << 20;

/// What to read next: as CAF wants it; or, of a message that is announced too long, one byte, which
/// CAF finds to be another length than announced and drops its connection for, if it comes at all.
inline caf::io::receive_policy::config within_limit(caf::io::receive_policy::config wanted,
                                                    caf::io::network::native_socket socket) {
  if (wanted.second <= kMostMessageBytes)
    return wanted;
  ::shutdown(socket, SHUT_RDWR);
  return caf::io::receive_policy::exactly(1);
}

} // namespace troupe::actors

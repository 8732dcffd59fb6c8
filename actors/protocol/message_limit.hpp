#pragma once

#include <cstddef>

#include <sys/socket.h>

#include <caf/io/network/native_socket.hpp>
#include <caf/io/receive_policy.hpp>

namespace troupe::actors {

/// Maximum size of a message between actor systems. CAF allocates the length that a peer announces,
/// up to 4 GiB, before a byte has arrived. Large data uses the data plane.
constexpr std::size_t kMostMessageBytes = std::size_t{64} << 20;

/// Returns how many bytes CAF should read next: as many as it requests, unless the announced
/// message is too long. Then it shuts the socket down and returns one byte, at which CAF drops the
/// connection because the length is wrong.
inline caf::io::receive_policy::config within_limit(caf::io::receive_policy::config wanted,
                                                    caf::io::network::native_socket socket,
                                                    std::size_t most_bytes = kMostMessageBytes) {
  if (wanted.second <= most_bytes)
    return wanted;
  ::shutdown(socket, SHUT_RDWR);
  return caf::io::receive_policy::exactly(1);
}

} // namespace troupe::actors

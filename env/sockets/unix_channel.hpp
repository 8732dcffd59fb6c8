#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "env/sockets/descriptor.hpp"

/// Connections between processes of a host that carry descriptors. Their addresses are abstract
/// names, which disappear with their owners. No call waits.
namespace troupe::env::wire {

/// These return an empty Descriptor if the system refuses.
Descriptor listen_at(const std::string& name);
Descriptor accept_from(const Descriptor& listener);
Descriptor connect_to(const std::string& name);

bool send_packet(const Descriptor& connection, std::span<const std::byte> bytes,
                 std::span<const int> descriptors);

struct Packet {
  std::vector<std::byte> bytes;
  std::vector<Descriptor> descriptors; // at most 2; more are closed
};
enum class Arrival { packet, nothing, end };
/// A packet of more than `limit` bytes counts as the end of the connection.
Arrival receive_packet(const Descriptor& connection, std::size_t limit, Packet& packet);

} // namespace troupe::env::wire

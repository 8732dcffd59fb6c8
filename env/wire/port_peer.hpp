#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/uio.h>

#include "env/sockets/descriptor.hpp"
#include "env/wire/zmtp_reader.hpp"

namespace troupe::env::wire {

/// A message as it is written to a connection: its parts, each preceded by its frame header.
struct PortMessage {
  explicit PortMessage(std::vector<Frame> of);
  explicit PortMessage(std::vector<std::byte> raw); // bytes of the protocol itself
  PortMessage(const PortMessage&) = delete;
  PortMessage& operator=(const PortMessage&) = delete;

  std::vector<Frame> parts;
  std::vector<std::byte> heads;
  std::vector<iovec> pieces; // the heads and parts, alternating
  std::size_t bytes = 0;
};

inline PortMessage::PortMessage(std::vector<Frame> of) : parts(std::move(of)) {
  std::vector<std::size_t> ends; // of heads
  for (std::size_t i = 0; i < parts.size(); ++i) {
    append_zmtp_head(heads, parts[i].size(), i + 1 < parts.size());
    ends.push_back(heads.size());
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    pieces.push_back({heads.data() + begin, ends[i] - begin});
    begin = ends[i];
    const auto part = std::as_const(parts[i]).bytes();
    if (!part.empty()) // it is only read
      pieces.push_back({const_cast<std::byte*>(part.data()), part.size()});
    bytes += part.size();
  }
  bytes += heads.size();
}

inline PortMessage::PortMessage(std::vector<std::byte> raw) : heads(std::move(raw)) {
  pieces.push_back({heads.data(), heads.size()});
  bytes = heads.size();
}

/// A connection of a PlainPort.
struct PortPeer {
  PortPeer(Descriptor connection, std::uint64_t number_, const ZmtpLimits& limits)
      : socket(std::move(connection)), number(number_), reader(limits) {}

  const Descriptor socket;
  const std::uint64_t number;
  const std::chrono::steady_clock::time_point came = std::chrono::steady_clock::now();

  // Used only by the port's thread:
  ZmtpReader reader;
  std::chrono::steady_clock::time_point began{}; // start of the unfinished message
  bool has_sent = false;                         // has sent a message

  // Changed only with the port's mutex:
  std::atomic<std::uint32_t> events = 0; // that epoll watches
  bool subscribed = false;
  bool doomed = false;  // to be disconnected
  bool writing = false; // a thread writes without the mutex
  std::deque<ZmtpMessage> received;
  std::size_t received_bytes = 0;
  std::deque<std::shared_ptr<const PortMessage>> unread;
  std::size_t unread_bytes = 0;
  std::size_t piece = 0;  // index in unread.front() of the next piece to write
  std::size_t offset = 0; // within that piece
};

} // namespace troupe::env::wire

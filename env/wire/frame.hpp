#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace troupe::env::wire {

class SharedBlock;

/// One part of a message: a block of bytes that ZeroMQ sends without copying, or that is in memory
/// shared with the peer. Owned by one thread at a time. A received frame is read-only: it may be
/// the sender's memory, which a malicious sender can change at any time, so check a copy.
class Frame {
public:
  Frame();                          // empty
  explicit Frame(std::size_t size); // uninitialised; throws std::bad_alloc
  explicit Frame(std::span<const std::byte> copied);
  /// Sends `bytes` in place; they stay alive and unchanged while `owner` lives.
  static Frame view(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  static Frame shared(std::shared_ptr<SharedBlock> block); // for Socket

  ~Frame();
  Frame(Frame&& other) noexcept;
  Frame& operator=(Frame&& other) noexcept;

  std::size_t size() const;
  std::span<const std::byte> bytes() const;
  std::span<std::byte> bytes();

  void* handle() { return &storage_; } // zmq_msg_t, for Socket; empty when there is a block
  const std::shared_ptr<SharedBlock>& shared_block() const { return block_; } // for Socket

private:
  alignas(8) mutable std::array<std::byte, 64> storage_;
  std::shared_ptr<SharedBlock> block_;
};

} // namespace troupe::env::wire

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace troupe::env::wire {

class SharedBlock;

/// One part of a message: a block of bytes that ZeroMQ sends without copying, or a block in memory
/// shared with the peer. One thread owns it at a time. A received frame is read-only. It may be the
/// sender's memory, which a malicious sender can change at any time, so copy the bytes before
/// checking them.
class Frame {
public:
  Frame();                          // empty
  explicit Frame(std::size_t size); // uninitialised; may throw std::bad_alloc
  explicit Frame(std::span<const std::byte> copied);
  /// Sends `bytes` in place. They must stay valid and unchanged while `owner` lives.
  static Frame view(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  static Frame shared(std::shared_ptr<SharedBlock> block); // for Socket

  ~Frame();
  Frame(Frame&& other) noexcept;
  Frame& operator=(Frame&& other) noexcept;

  std::size_t size() const;
  std::span<const std::byte> bytes() const;
  std::span<std::byte> bytes();

  void* handle() { return &storage_; } // zmq_msg_t, for Socket; empty if there is a shared block
  const std::shared_ptr<SharedBlock>& shared_block() const { return block_; } // for Socket

private:
  alignas(8) mutable std::array<std::byte, 64> storage_;
  std::shared_ptr<SharedBlock> block_;
};

} // namespace troupe::env::wire

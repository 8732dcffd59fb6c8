#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace troupe::env::wire {

/// One part of a message: a block of bytes that ZeroMQ sends without copying. Owned by one thread
/// at a time.
class Frame {
public:
  Frame();                          // empty
  explicit Frame(std::size_t size); // uninitialised; throws std::bad_alloc
  explicit Frame(std::span<const std::byte> copied);
  /// Sends `bytes` in place; they stay alive and unchanged while `owner` lives.
  static Frame view(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  ~Frame();
  Frame(Frame&& other) noexcept;
  Frame& operator=(Frame&& other) noexcept;

  std::size_t size() const;
  std::span<const std::byte> bytes() const;
  std::span<std::byte> bytes();

  void* handle() { return &storage_; } // zmq_msg_t, for Socket

private:
  alignas(8) mutable std::array<std::byte, 64> storage_;
};

} // namespace troupe::env::wire

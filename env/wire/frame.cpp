#include "env/wire/frame.hpp"

#include <cstring>
#include <new>
#include <utility>

#include <zmq.h>

#include "env/wire/shared_heap.hpp"

namespace troupe::env::wire {

static_assert(sizeof(zmq_msg_t) == 64 && alignof(zmq_msg_t) <= 8);

namespace {

zmq_msg_t* message(Frame& frame) {
  return static_cast<zmq_msg_t*>(frame.handle());
}

void release(void* /*bytes*/, void* owner) {
  delete static_cast<std::shared_ptr<const void>*>(owner);
}

} // namespace

Frame::Frame() {
  zmq_msg_init(message(*this));
}

Frame::Frame(std::size_t size) {
  if (zmq_msg_init_size(message(*this), size) != 0)
    throw std::bad_alloc();
}

Frame::Frame(std::span<const std::byte> copied) : Frame(copied.size()) {
  if (!copied.empty())
    std::memcpy(bytes().data(), copied.data(), copied.size());
}

Frame Frame::view(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  Frame frame;
  auto keep = std::make_unique<std::shared_ptr<const void>>(std::move(owner));
  // ZeroMQ takes a void* but only reads from it.
  if (zmq_msg_init_data(message(frame), const_cast<std::byte*>(bytes.data()), bytes.size(), release,
                        keep.get())
      != 0)
    throw std::bad_alloc();
  keep.release();
  return frame;
}

Frame Frame::shared(std::shared_ptr<SharedBlock> block) {
  Frame frame;
  frame.block_ = std::move(block);
  return frame;
}

Frame::~Frame() {
  zmq_msg_close(message(*this));
}

Frame::Frame(Frame&& other) noexcept : Frame() {
  zmq_msg_move(message(*this), message(other));
  block_ = std::move(other.block_);
}

Frame& Frame::operator=(Frame&& other) noexcept {
  if (this != &other) {
    zmq_msg_move(message(*this), message(other));
    block_ = std::exchange(other.block_, nullptr);
  }
  return *this;
}

std::size_t Frame::size() const {
  return bytes().size();
}

std::span<const std::byte> Frame::bytes() const {
  if (block_)
    return block_->bytes();
  auto* raw = reinterpret_cast<zmq_msg_t*>(&storage_);
  return {static_cast<const std::byte*>(zmq_msg_data(raw)), zmq_msg_size(raw)};
}

std::span<std::byte> Frame::bytes() {
  if (block_)
    return block_->bytes();
  return {static_cast<std::byte*>(zmq_msg_data(message(*this))), zmq_msg_size(message(*this))};
}

} // namespace troupe::env::wire

#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace troupe::env::caster {

/// Allocates consecutive pieces of a memory block that its reader accesses at another address.
/// Without a block (null), it only counts the bytes.
class Arena {
public:
  Arena(std::byte* block, const std::byte* seen) : block_(block), seen_(seen) {}

  template <class T>
  struct Piece {
    T* here;                 // writable; null when only counting
    std::span<const T> seen; // the same at the reader's address
  };

  template <class T>
  Piece<T> take(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    Piece<T> piece{block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + used_), {}};
    if (block_ != nullptr)
      piece.seen = {reinterpret_cast<const T*>(seen_ + used_), count};
    used_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return piece;
  }

  template <class T>
  std::span<const T> put(const T* values, std::size_t count) {
    const Piece<T> piece = take<T>(count);
    if (piece.here != nullptr && count > 0)
      std::memcpy(static_cast<void*>(piece.here), values, count * sizeof(T));
    return piece.seen;
  }

  std::size_t used() const { return used_; }

private:
  static constexpr std::size_t kAlignment = 64;
  std::byte* block_;
  const std::byte* seen_;
  std::size_t used_ = 0;
};

} // namespace troupe::env::caster

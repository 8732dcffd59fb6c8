#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace troupe::env::minatar {

/// A list of at most `kMost` elements without a pointer, so that a game's state can be copied byte
/// by byte. Unused elements are T{}, so that equal lists have equal bytes.
template <class T, std::int32_t kMost>
class BoundedList {
public:
  std::span<T> elements() { return std::span(elements_).first(static_cast<std::size_t>(size_)); }
  std::span<const T> elements() const {
    return std::span(elements_).first(static_cast<std::size_t>(size_));
  }
  std::int32_t size() const { return size_; }
  T& operator[](std::int32_t i) { return elements_[static_cast<std::size_t>(i)]; }

  /// Ignored when the list is full.
  void append(const T& element) {
    if (size_ < kMost)
      elements_[static_cast<std::size_t>(size_++)] = element;
  }

  /// Later elements move forward by one.
  void erase(std::int32_t i) {
    std::shift_left(elements_.begin() + i, elements_.begin() + size_, 1);
    elements_[static_cast<std::size_t>(--size_)] = T{};
  }

  /// Erases the first element for which `wanted` is true. Returns whether there was one.
  template <class Wanted>
  bool erase_first(const Wanted& wanted) {
    for (std::int32_t i = 0; i < size_; ++i)
      if (wanted((*this)[i])) {
        erase(i);
        return true;
      }
    return false;
  }

  /// Whether these bytes, loaded from outside, are a list whose elements are all `good`.
  template <class Good>
  bool is_valid(const Good& good) const {
    return size_ >= 0 && size_ <= kMost && std::ranges::all_of(elements(), good);
  }

private:
  std::int32_t size_ = 0;
  std::array<T, kMost> elements_{};
};

} // namespace troupe::env::minatar

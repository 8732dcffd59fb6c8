#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "env/caster/frame.hpp"

// A Frame for formulas compiled without std::vector. The members have the same names, and are spans
// of memory that the reader can access (for kernels, the device's memory).

namespace troupe::env::caster {

/// Values that start every `stride` bytes. `stride` may be less than sizeof(T): then the end of
/// each value is missing.
template <class T>
class StridedView {
public:
  constexpr StridedView() = default;
  constexpr StridedView(const std::byte* first, std::size_t stride, std::size_t count)
      : first_(first), stride_(stride), count_(count) {}

  constexpr std::size_t size() const { return count_; }
  constexpr const T& operator[](std::size_t i) const {
    return *reinterpret_cast<const T*>(first_ + i * stride_);
  }

private:
  const std::byte* first_ = nullptr;
  std::size_t stride_ = sizeof(T);
  std::size_t count_ = 0;
};

struct LightTableView : LightWindow {
  std::span<const float> ambient;
  std::span<const float> diffuse;
  std::span<const float> specular;
};

struct SpanSetView {
  std::span<const SpanItem> items;
  std::span<const std::int32_t> numbers; // SpanItem::item of each item
  std::span<const BlockRange> ranges;
};

struct FrameView : FrameNumbers {
  StridedView<Shape> shapes; // each has only as many lights as the frame
  std::span<const Light> lights;
  SpanSetView visible;
  SpanSetView mirrored;
  SpanSetView shadowed;
  std::span<const ShadowPair> pairs;
  std::span<const std::int32_t> caster_first;
  std::span<const std::int32_t> caster_list;
  std::span<const LightTableView> tables;
  std::span<const std::uint8_t> thin; // [block rows, block columns]; see RowCandidates::thin
};

/// The layout of a picture's bytes: dense, [channels, height, width] or [height, width, channels].
struct PictureFormat {
  int height = 0;
  int width = 0;
  bool grey = false;
  bool interleaved = false; // channels last

  constexpr int channels() const { return grey ? 1 : 3; }
  constexpr std::size_t bytes() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width)
           * static_cast<std::size_t>(channels());
  }
};

} // namespace troupe::env::caster

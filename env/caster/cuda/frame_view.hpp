#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "env/caster/frame.hpp"

// A Frame as the formulas read it where there is no std::vector: the same names, spans into memory
// that the reader can reach (the device's, for its kernels).

namespace troupe::env::caster {

/// Values that begin `stride` bytes apart: of each there are only so many bytes.
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
  std::span<const std::int32_t> numbers; // items' numbers, in their order
  std::span<const BlockRange> ranges;
};

struct FrameView : FrameNumbers {
  StridedView<Shape> shapes; // without the lights that the frame has not
  std::span<const Light> lights;
  SpanSetView visible;
  SpanSetView mirrored;
  SpanSetView shadowed;
  std::span<const ShadowPair> pairs;
  std::span<const std::int32_t> caster_first;
  std::span<const std::int32_t> caster_list;
  std::span<const LightTableView> tables;
  std::span<const std::uint8_t> thin; // [block rows, block columns] as RowCandidates::thin
};

/// Where a picture's bytes go: dense, [channels, height, width] or [height, width, channels].
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

#pragma once

#include <cstdint>
#include <span>

#include "env/caster/frame.hpp"

// A Frame as the formulas read it where there is no std::vector: the same names, spans into memory
// that the reader can reach (the device's, for its kernels).

namespace troupe::env::caster {

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
  std::span<const Shape> shapes;
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

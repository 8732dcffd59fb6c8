// The work of one thread of the kernel: a picture is drawn in tiles of kTileSide x kTileSide
// threads, with one thread per pixel. With effects, the tiles overlap by one pixel on each side,
// because finding an edge needs the neighbours' keys.
#if defined(TROUPE_ENV_CASTER_CUDA_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_CUDA_TILE_INL_HPP_
#undef TROUPE_ENV_CASTER_CUDA_TILE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_CUDA_TILE_INL_HPP_
#endif

#include "env/caster/cuda/frame_view.hpp"
#include "env/caster/kernels/pixel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

inline constexpr int kTileSide = 16;
// The threads that share a list of candidates, which are a warp.
inline constexpr int kGroupWidth = 8;
inline constexpr int kGroupHeight = 4;
inline constexpr int kGroups = 8; // per tile: two columns of four
inline constexpr int kBlock = 4;  // side of a SpanSet's block in pixels

/// The distance between two tiles in pixels.
HWY_INLINE int tile_step(bool effects) {
  return effects ? kTileSide - 2 : kTileSide;
}

/// The pixel of a thread; it may be outside the picture.
struct TilePixel {
  int x;
  int y;
};

HWY_INLINE TilePixel tile_pixel(const FrameNumbers& frame, int tile_x, int tile_y, int across,
                                int down) {
  const int step = tile_step(frame.effects);
  const int margin = frame.effects ? 1 : 0;
  return {tile_x * step - margin + across, tile_y * step - margin + down};
}

/// Returns the pixel, or the nearest one inside the picture, which continues its border outside.
HWY_INLINE TilePixel inside_picture(const FrameNumbers& frame, TilePixel pixel) {
  return {min(max(pixel.x, 0), frame.width - 1), min(max(pixel.y, 0), frame.height - 1)};
}

/// The blocks that contain a group's pixels, both ends included.
struct BlockArea {
  int first_column;
  int last_column;
  int first_row;
  int last_row;
};

HWY_INLINE BlockArea group_area(const FrameNumbers& frame, TilePixel first) {
  const TilePixel low = inside_picture(frame, first);
  const TilePixel high =
      inside_picture(frame, {first.x + kGroupWidth - 1, first.y + kGroupHeight - 1});
  return {low.x / kBlock, high.x / kBlock, low.y / kBlock, high.y / kBlock};
}

/// Whether item `number` of the set may cover one of the blocks.
HWY_INLINE bool touches(const SpanSetView& set, std::size_t number, const BlockArea& area) {
  const SpanItem& item = set.items[number];
  const int last = min(area.last_row, item.last_row);
  for (int row = max(area.first_row, item.first_row); row <= last; ++row) {
    const BlockRange range =
        set.ranges[item.ranges + static_cast<std::size_t>(row - item.first_row)];
    if (range.first <= range.last && range.first <= area.last_column
        && range.last >= area.first_column)
      return true;
  }
  return false;
}

HWY_INLINE int mask_words(const SpanSetView& set) {
  return static_cast<int>((set.items.size() + 63) / 64);
}

/// The candidates of a group. `masks` has the masks of the three sets, one after the other.
HWY_INLINE Candidates group_candidates(const FrameView& frame, const std::uint64_t* masks) {
  const int visible = mask_words(frame.visible);
  const int mirrored = mask_words(frame.mirrored);
  return {{frame.visible.numbers.data(), masks, visible},
          {frame.mirrored.numbers.data(), masks + visible, mirrored},
          {frame.shadowed.numbers.data(), masks + visible + mirrored, mask_words(frame.shadowed)}};
}

template <bool kOrthographic>
HWY_INLINE std::int32_t sky_at(const FrameView& frame, TilePixel pixel) {
  const Shader<kOrthographic, FrameView> shader{frame};
  return frame.sky == nullptr
             ? 0
             : sky_colour<float>(shader, static_cast<float>(pixel.x), static_cast<float>(pixel.y));
}

struct Centre {
  std::int32_t key;
  std::int32_t colour;
};

/// Finds what the pixel's centre shows.
template <bool kOrthographic>
HWY_INLINE Centre draw_centre(const FrameView& frame, const Candidates& candidates,
                              TilePixel pixel) {
  if (candidates.visible.empty() && frame.hazy == nullptr)
    return {0, sky_at<kOrthographic>(frame, pixel)};
  const Packet<float> packet =
      make_packet<kOrthographic>(pixel_u(frame.camera, static_cast<float>(pixel.x)),
                                 pixel_v(frame.camera, static_cast<float>(pixel.y)));
  const Shader<kOrthographic, FrameView> shader{frame};
  const Seen<float> seen = shader.tracer.trace(candidates, packet);
  const std::int32_t sky = seen.shape < 0 ? sky_at<kOrthographic>(frame, pixel) : 0;
  return {seen.key, shader.colour(candidates, packet, seen, true, sky)};
}

/// Whether the pixel needs four samples. `index` is its index in the tile's grid.
HWY_INLINE bool needs_samples(const FrameView& frame, const PixelGrid& grid, TilePixel pixel,
                              int index) {
  if (!frame.effects)
    return false;
  const std::int32_t* key = grid.keys + index;
  if (*key != key[-1] || *key != key[1] || *key != key[-grid.stride] || *key != key[grid.stride])
    return true;
  const std::size_t block =
      static_cast<std::size_t>(pixel.y / kBlock) * static_cast<std::size_t>(frame.block_columns)
      + static_cast<std::size_t>(pixel.x / kBlock);
  return frame.thin[block] != 0;
}

/// Whether the thread's tile writes this pixel.
HWY_INLINE bool owns_pixel(const FrameNumbers& frame, TilePixel pixel, int across, int down) {
  const int margin = frame.effects ? 1 : 0;
  return across >= margin && across < kTileSide - margin && down >= margin
         && down < kTileSide - margin && pixel.x < frame.width && pixel.y < frame.height;
}

HWY_INLINE void write_pixel(const PictureFormat& format, TilePixel pixel, std::int32_t colour,
                            std::uint8_t* picture) {
  const std::size_t at = static_cast<std::size_t>(pixel.y) * static_cast<std::size_t>(format.width)
                         + static_cast<std::size_t>(pixel.x);
  if (format.grey) {
    picture[at] = static_cast<std::uint8_t>(luma<float>(colour));
    return;
  }
  const std::size_t plane =
      static_cast<std::size_t>(format.width) * static_cast<std::size_t>(format.height);
  for (int c = 0; c < 3; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    picture[format.interleaved ? 3 * at + channel : channel * plane + at] =
        static_cast<std::uint8_t>(colour >> (8 * c) & 255);
  }
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif

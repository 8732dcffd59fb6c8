#define TROUPE_CASTER_FLOATS
#include "tests/env/caster/draw_with_floats.hpp"

#include <algorithm>
#include <vector>

#include "env/caster/cuda/tile-inl.hpp"

namespace troupe::env::caster {

namespace {

using namespace of_host_floats;

void collect(const SpanSetView& set, const BlockArea& area, std::uint64_t* masks) {
  for (std::size_t i = 0; i < set.items.size(); ++i)
    if (touches(set, i, area))
      masks[i / 64] |= std::uint64_t{1} << (i % 64);
}

/// Draws tile after tile, each as one block of threads would.
template <bool kOrthographic>
class HostTile {
public:
  HostTile(const FrameView& frame, const PictureFormat& format, std::uint8_t* out)
      : frame_(frame), format_(format), out_(out) {
    words_ = static_cast<std::size_t>(mask_words(frame.visible) + mask_words(frame.mirrored)
                                      + mask_words(frame.shadowed));
    masks_.resize(kGroups * words_);
  }

  void draw(int tile_x, int tile_y) {
    std::fill(masks_.begin(), masks_.end(), 0);
    for (int group = 0; group < kGroups; ++group) {
      const BlockArea area =
          group_area(frame_, tile_pixel(frame_, tile_x, tile_y, group % 2 * kGroupWidth,
                                        group / 2 * kGroupHeight));
      std::uint64_t* masks = group_masks(group);
      collect(frame_.visible, area, masks);
      collect(frame_.mirrored, area, masks + mask_words(frame_.visible));
      collect(frame_.shadowed, area,
              masks + mask_words(frame_.visible) + mask_words(frame_.mirrored));
    }
    for_each_thread(tile_x, tile_y, [&](int index, TilePixel pixel, const Candidates& candidates) {
      const Centre centre =
          draw_centre<kOrthographic>(frame_, candidates, inside_picture(frame_, pixel));
      keys_[index] = centre.key;
      colours_[index] = centre.colour;
    });
    const PixelGrid grid{keys_, colours_, kTileSide};
    for_each_thread(tile_x, tile_y, [&](int index, TilePixel pixel, const Candidates& candidates) {
      if (!owns_pixel(frame_, pixel, index % kTileSide, index / kTileSide))
        return;
      const Shader<kOrthographic, FrameView> shader{frame_};
      write_pixel(format_, pixel,
                  needs_samples(frame_, grid, pixel, index)
                      ? smooth_pixels<float>(shader, candidates, grid, pixel.x, pixel.y, index,
                                             [&] { return sky_at<kOrthographic>(frame_, pixel); })
                      : colours_[index],
                  out_);
    });
  }

private:
  std::uint64_t* group_masks(int group) {
    return masks_.data() + static_cast<std::size_t>(group) * words_;
  }

  template <class Visit>
  void for_each_thread(int tile_x, int tile_y, Visit&& visit) {
    for (int index = 0; index < kTileSide * kTileSide; ++index) {
      const int across = index % kTileSide;
      const int down = index / kTileSide;
      const int group = down / kGroupHeight * 2 + across / kGroupWidth;
      visit(index, tile_pixel(frame_, tile_x, tile_y, across, down),
            group_candidates(frame_, group_masks(group)));
    }
  }

  const FrameView& frame_;
  const PictureFormat& format_;
  std::uint8_t* out_;
  std::size_t words_;
  std::vector<std::uint64_t> masks_;
  std::int32_t keys_[kTileSide * kTileSide];
  std::int32_t colours_[kTileSide * kTileSide];
};

template <bool kOrthographic>
void draw_tiles(const FrameView& frame, const PictureFormat& format, std::uint8_t* out) {
  HostTile<kOrthographic> tile(frame, format, out);
  const int step = tile_step(frame.effects);
  for (int y = 0; y * step < frame.height; ++y)
    for (int x = 0; x * step < frame.width; ++x)
      tile.draw(x, y);
}

} // namespace

void draw_with_floats(const FrameView& frame, const PictureFormat& format,
                      std::span<std::uint8_t> out) {
  if (out.size() != format.bytes())
    return;
  if (frame.camera.orthographic)
    draw_tiles<true>(frame, format, out.data());
  else
    draw_tiles<false>(frame, format, out.data());
}

} // namespace troupe::env::caster

// The kernel: a block of threads draws a tile of one picture, a thread a pixel.
#pragma once

#define TROUPE_CASTER_FLOATS
#include <cuda_runtime.h>

#include "env/caster/cuda/cuda_device.hpp"
#include "env/caster/cuda/tile-inl.hpp"

namespace troupe::env::caster {

namespace {

using namespace of_device_floats;

/// Bits of the set's items that touch the area, by all threads of a warp.
__device__ void collect(const SpanSetView& set, const BlockArea& area, int lane,
                        std::uint64_t* masks) {
  auto* halves = reinterpret_cast<std::uint32_t*>(masks); // low half first
  const std::size_t count = set.items.size();
  for (std::size_t first = 0; first < (count + 63) / 64 * 64; first += 32) {
    const std::size_t number = first + static_cast<std::size_t>(lane);
    const unsigned met = __ballot_sync(~0U, number < count && touches(set, number, area));
    if (lane == 0)
      halves[first / 32] = met;
  }
}

template <bool kOrthographic>
__global__ void __launch_bounds__(kTileSide* kTileSide)
    draw_tiles(const FrameView* frames, PictureFormat format, int words, std::uint8_t* pictures) {
  extern __shared__ std::uint64_t all_masks[]; // [kGroups][words]
  __shared__ std::int32_t keys[kTileSide * kTileSide];
  __shared__ std::int32_t colours[kTileSide * kTileSide];
  const FrameView& frame = frames[blockIdx.z];
  if (frame.camera.orthographic != kOrthographic)
    return; // the whole block
  const int tile_x = static_cast<int>(blockIdx.x);
  const int tile_y = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.y) * kGroupWidth + static_cast<int>(threadIdx.x);
  const int group = static_cast<int>(threadIdx.z);
  const int left = group % 2 * kGroupWidth;
  const int top = group / 2 * kGroupHeight;
  const int across = left + static_cast<int>(threadIdx.x);
  const int down = top + static_cast<int>(threadIdx.y);
  const int index = down * kTileSide + across;

  std::uint64_t* masks = all_masks + group * words;
  const BlockArea area = group_area(frame, tile_pixel(frame, tile_x, tile_y, left, top));
  collect(frame.visible, area, lane, masks);
  collect(frame.mirrored, area, lane, masks + mask_words(frame.visible));
  collect(frame.shadowed, area, lane,
          masks + mask_words(frame.visible) + mask_words(frame.mirrored));
  __syncwarp();

  const Candidates candidates = group_candidates(frame, masks);
  const TilePixel pixel = tile_pixel(frame, tile_x, tile_y, across, down);
  const Centre centre = draw_centre<kOrthographic>(frame, candidates, inside_picture(frame, pixel));
  keys[index] = centre.key;
  colours[index] = centre.colour;
  __syncthreads();

  if (!owns_pixel(frame, pixel, across, down))
    return;
  const PixelGrid grid{keys, colours, kTileSide};
  write_pixel(format, pixel, finish_pixel<kOrthographic>(frame, candidates, grid, pixel, index),
              pictures + blockIdx.z * format.bytes());
}

template <bool kOrthographic>
int launch_tiles(const Launch& launch) {
  const int step = launch.effects ? kTileSide - 2 : kTileSide;
  const dim3 grid(static_cast<unsigned>((launch.format.width + step - 1) / step),
                  static_cast<unsigned>((launch.format.height + step - 1) / step),
                  static_cast<unsigned>(launch.environments));
  const dim3 block(kGroupWidth, kGroupHeight, kGroups);
  draw_tiles<kOrthographic><<<grid, block, kGroups * launch.words * sizeof(std::uint64_t),
                              static_cast<cudaStream_t>(launch.stream)>>>(
      launch.frames, launch.format, static_cast<int>(launch.words), launch.pictures);
  return cudaGetLastError();
}

} // namespace

} // namespace troupe::env::caster

// The kernel. A thread block draws a tile of one picture, and each thread draws the centre of one
// pixel. The pixels at edges are listed; then each of their four samples gets a thread.
#pragma once

#define TROUPE_CASTER_FLOATS
#include <cuda_runtime.h>

#include "env/caster/cuda/cuda_device.hpp"
#include "env/caster/cuda/tile-inl.hpp"

namespace troupe::env::caster {

namespace {

using namespace of_device_floats;

/// Sets the bits of the set's items that touch the area. All threads of a warp call it.
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

constexpr unsigned kAllLanes = ~0U;
constexpr int kLanes = 32;      // threads in a warp
constexpr int kTilesAtOnce = 2; // per multiprocessor; more would need too many registers

/// The mean of a pixel's four samples, as in smooth_pixels(). Four adjacent lanes have one sample
/// each. All lanes of a warp must call it; lanes without a pixel pass false for `active`.
template <bool kOrthographic>
__device__ std::int32_t mean_of_four(const FrameView& frame, const Candidates& candidates,
                                     const PixelGrid& grid, TilePixel pixel, int index, int lane,
                                     bool active) {
  const Shader<kOrthographic, FrameView> shader{frame};
  const int first = lane & ~3;
  Packet<float> packet{};
  Seen<float> seen{};
  std::int32_t colour = 0;
  bool pending = false;
  if (active) {
    const Camera& camera = frame.camera;
    const auto [across, above] = sample_place(lane - first);
    packet = make_packet<kOrthographic>(
        pixel_u(camera, static_cast<float>(pixel.x)) + across * camera.du,
        pixel_v(camera, static_cast<float>(pixel.y)) + above * camera.dv);
    seen = shader.tracer.trace(candidates, packet);
    bool found = seen.key == grid.keys[index];
    colour = grid.colours[index];
    if (!found)
      take_from_neighbours<float>(grid, frame.floor, seen, index, found, colour);
    pending = !found;
  }
  // The first sample that shows a thing is shaded for all samples that show it.
  const unsigned waiting = __ballot_sync(kAllLanes, pending) >> first;
  const unsigned through = __ballot_sync(kAllLanes, seen.through) >> first & 15;
  const unsigned mirrored = __ballot_sync(kAllLanes, seen.through_mirror) >> first & 15;
  int shading = lane;
  for (int s = 3; s >= 0; --s) {
    const std::int32_t key = __shfl_sync(kAllLanes, seen.key, first + s);
    if ((waiting >> s & 1) != 0 && key == seen.key)
      shading = first + s;
  }
  if (pending && shading == lane) {
    seen.through = through != 0;
    seen.through_mirror = mirrored != 0;
    const std::int32_t sky = seen.shape < 0 ? sky_at<kOrthographic>(frame, pixel) : 0;
    colour = shader.colour(candidates, packet, seen, true, sky);
  }
  const std::int32_t shaded = __shfl_sync(kAllLanes, colour, shading);
  if (pending)
    colour = shaded;
  std::int32_t red_blue = colour & 0x00ff00ff;
  std::int32_t green = colour >> 8 & 255;
  for (const int step : {1, 2}) {
    red_blue += __shfl_xor_sync(kAllLanes, red_blue, step);
    green += __shfl_xor_sync(kAllLanes, green, step);
  }
  return (((red_blue + 0x00020002) >> 2) & 0x00ff00ff) | (green + 2) >> 2 << 8;
}

/// Appends the index in the tile of each pixel that needs samples. All threads of a warp call it.
__device__ void list_edge(bool edge, int index, int lane, int* count, std::uint8_t* edges) {
  const unsigned found = __ballot_sync(kAllLanes, edge);
  int begin = 0;
  if (lane == 0 && found != 0)
    begin = atomicAdd(count, __popc(found));
  begin = __shfl_sync(kAllLanes, begin, 0);
  if (edge)
    edges[begin + __popc(found & ((1U << lane) - 1))] = static_cast<std::uint8_t>(index);
}

template <bool kOrthographic>
__global__ void __launch_bounds__(kTileSide* kTileSide, kTilesAtOnce)
    draw_tiles(const FrameView* frames, PictureFormat format, int words, std::uint8_t* pictures) {
  extern __shared__ std::uint64_t all_masks[]; // [kGroups][words]
  __shared__ std::int32_t keys[kTileSide * kTileSide];
  __shared__ std::int32_t colours[kTileSide * kTileSide];
  __shared__ std::uint8_t edges[kTileSide * kTileSide];
  __shared__ int edge_count;
  const FrameView& frame = frames[blockIdx.z];
  if (frame.camera.orthographic != kOrthographic)
    return; // all threads of the block return
  const int tile_x = static_cast<int>(blockIdx.x);
  const int tile_y = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.y) * kGroupWidth + static_cast<int>(threadIdx.x);
  const int group = static_cast<int>(threadIdx.z);
  const int left = group % 2 * kGroupWidth;
  const int top = group / 2 * kGroupHeight;
  const int across = left + static_cast<int>(threadIdx.x);
  const int down = top + static_cast<int>(threadIdx.y);
  const int index = down * kTileSide + across;
  std::uint8_t* const picture = pictures + blockIdx.z * format.bytes();

  std::uint64_t* masks = all_masks + group * words;
  const BlockArea area = group_area(frame, tile_pixel(frame, tile_x, tile_y, left, top));
  collect(frame.visible, area, lane, masks);
  collect(frame.mirrored, area, lane, masks + mask_words(frame.visible));
  collect(frame.shadowed, area, lane,
          masks + mask_words(frame.visible) + mask_words(frame.mirrored));
  __syncwarp();

  const TilePixel pixel = tile_pixel(frame, tile_x, tile_y, across, down);
  const Centre centre = draw_centre<kOrthographic>(frame, group_candidates(frame, masks),
                                                   inside_picture(frame, pixel));
  keys[index] = centre.key;
  colours[index] = centre.colour;
  if (index == 0)
    edge_count = 0;
  __syncthreads();

  const PixelGrid grid{keys, colours, kTileSide};
  const bool owned = owns_pixel(frame, pixel, across, down);
  const bool edge = owned && needs_samples(frame, grid, pixel, index);
  if (owned && !edge)
    write_pixel(format, pixel, centre.colour, picture);
  list_edge(edge, index, lane, &edge_count, edges);
  __syncthreads();

  const int samples = 4 * edge_count;
  for (int first = group * kLanes; first < samples; first += kGroups * kLanes) {
    const int sample = first + lane;
    const bool active = sample < samples;
    const int at = edges[active ? sample / 4 : 0];
    const int of_group = at / kTileSide / kGroupHeight * 2 + at % kTileSide / kGroupWidth;
    const TilePixel one = tile_pixel(frame, tile_x, tile_y, at % kTileSide, at / kTileSide);
    const std::int32_t colour = mean_of_four<kOrthographic>(
        frame, group_candidates(frame, all_masks + of_group * words), grid, one, at, lane, active);
    if (active && lane % 4 == 0)
      write_pixel(format, one, colour, picture);
  }
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

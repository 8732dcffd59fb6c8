// Draws whole pictures: first all pixels at their centres, in blocks of 4x4, then pixels at edges
// with four samples each.
#if defined(TROUPE_ENV_CASTER_DRAW_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_DRAW_INL_HPP_
#undef TROUPE_ENV_CASTER_DRAW_INL_HPP_
#else
#define TROUPE_ENV_CASTER_DRAW_INL_HPP_
#endif

#include <cstring>

#include "env/caster/kernels/prepare-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

inline ItemSet items_of(const RowItems& row, const std::uint64_t* masks) {
  return {row.items.data(), masks, row.words};
}

inline Candidates block_candidates(const RowCandidates& row, int column) {
  return {items_of(row.visible, row.visible.block(column)),
          items_of(row.mirrored, row.mirrored.block(column)),
          items_of(row.shadowed, row.shadowed.block(column))};
}

/// The centres of a block's pixels, starting at pixel `first`; one per lane.
template <bool kOrthographic, class R>
HWY_INLINE Packet<R> block_packet(const Camera& camera, int column, int row, int first) {
  const IntOf<R> lane = lane_numbers<R>() + IntOf<R>(first);
  const IntOf<R> x = (lane & IntOf<R>(3)) + IntOf<R>(column * kBlockSide);
  const IntOf<R> y = shift_right<2>(lane) + IntOf<R>(row * kBlockSide);
  return make_packet<kOrthographic>(pixel_u(camera, to_real(x)), pixel_v(camera, to_real(y)));
}

template <bool kOrthographic>
class Drawing {
public:
  Drawing(const Frame& frame, Picture& picture) : frame_(frame), picture_(picture) {}

  void draw() {
    for (int row = 0; row < frame_.block_rows; ++row) {
      RowCandidates& candidates = picture_.rows[row & 1];
      candidates.collect(frame_, row);
      for (int column = 0; column < frame_.block_columns; ++column)
        draw_block(candidates, column, row);
      copy_margins(row);
      if (frame_.effects && row > 0)
        smooth_row(row - 1);
    }
    if (frame_.effects)
      smooth_row(frame_.block_rows - 1);
  }

private:
  void draw_block(const RowCandidates& row_candidates, int column, int row) {
    const Candidates candidates = block_candidates(row_candidates, column);
    alignas(64) std::int32_t colours[kBlockPixels];
    alignas(64) std::int32_t keys[kBlockPixels];
    alignas(64) std::int32_t skies[kBlockPixels];
    std::size_t rows[kBlockSide];
    for (int y = 0; y < kBlockSide; ++y) {
      rows[y] = picture_.at(column * kBlockSide, row * kBlockSide + y);
      std::memcpy(skies + kBlockSide * y, picture_.sky.data() + rows[y], 16);
    }
    if (candidates.visible.empty() && frame_.hazy == nullptr) {
      std::memcpy(colours, skies, sizeof colours);
      std::memset(keys, 0, sizeof keys);
    } else {
      for (int lane = 0; lane < kBlockPixels; lane += kLanes<Real>) {
        const Packet<Real> packet =
            block_packet<kOrthographic, Real>(frame_.camera, column, row, lane);
        const Seen<Real> seen = shader_.tracer.trace(candidates, packet);
        const Mask everywhere = packet.squared > Real(0.0F);
        store(shader_.colour(candidates, packet, seen, everywhere, load_int<Real>(skies + lane)),
              colours + lane);
        store(seen.key, keys + lane);
      }
    }
    for (int y = 0; y < kBlockSide; ++y) {
      std::memcpy(picture_.keys.data() + rows[y], keys + kBlockSide * y, 16);
      std::memcpy(picture_.colours.data() + rows[y], colours + kBlockSide * y, 16);
      std::memcpy(picture_.smooth.data() + rows[y], colours + kBlockSide * y, 16);
    }
  }

  /// Continues the border's keys outside the picture, so that borders do not count as edges.
  void copy_margins(int row) {
    std::int32_t* keys = picture_.keys.data();
    const int top = row * kBlockSide;
    for (int y = top; y < top + kBlockSide; ++y) {
      keys[picture_.at(-1, y)] = keys[picture_.at(0, y)];
      keys[picture_.at(frame_.width, y)] = keys[picture_.at(frame_.width - 1, y)];
    }
    const std::size_t bytes = static_cast<std::size_t>(picture_.stride) * sizeof(std::int32_t);
    const int pad = -Picture::kPad;
    if (row == 0)
      std::memcpy(keys + picture_.at(pad, -1), keys + picture_.at(pad, 0), bytes);
    if (row == frame_.block_rows - 1)
      std::memcpy(keys + picture_.at(pad, frame_.height),
                  keys + picture_.at(pad, frame_.height - 1), bytes);
  }

  /// For each block in this row of blocks, finds the pixels that differ from a neighbour, as bits.
  void find_edges(const RowCandidates& candidates, int row) {
    const std::int32_t* keys = picture_.keys.data();
    std::fill(picture_.edges.begin(), picture_.edges.end(), 0U);
    for (int y = 0; y < kBlockSide && row * kBlockSide + y < frame_.height; ++y) {
      const std::size_t start = picture_.at(0, row * kBlockSide + y);
      const auto stride = static_cast<std::size_t>(picture_.stride);
      for (int x = 0; x < frame_.width; x += kLanes<Real>) {
        const std::int32_t* at = keys + start + x;
        const Integer own = load_int<Real>(at);
        const Mask differs = (own != load_int<Real>(at - 1)) | (own != load_int<Real>(at + 1))
                             | (own != load_int<Real>(at - stride))
                             | (own != load_int<Real>(at + stride));
        std::uint32_t found = bits(differs);
        if (found == 0)
          continue;
        if (frame_.width - x < kLanes<Real>)
          found &= (1U << (frame_.width - x)) - 1;
        add_edges(found, x, y);
      }
    }
    for (int column = 0; column < frame_.block_columns; ++column)
      if (candidates.thin[static_cast<std::size_t>(column)] != 0)
        picture_.edges[static_cast<std::size_t>(column)] = inside_picture(column, row);
  }

  void add_edges(std::uint32_t found, int x, int y) {
    if constexpr (kLanes<Real> >= kBlockSide) {
      for (int i = 0; found != 0; ++i, found >>= kBlockSide)
        if ((found & 15) != 0)
          picture_.edges[static_cast<std::size_t>(x / kBlockSide + i)] |= (found & 15)
                                                                          << (kBlockSide * y);
    } else {
      picture_.edges[static_cast<std::size_t>(x / kBlockSide)] |= found << (kBlockSide * y + x % 4);
    }
  }

  std::uint32_t inside_picture(int column, int row) const {
    std::uint32_t inside = 0;
    for (int i = 0; i < kBlockPixels; ++i)
      if (column * kBlockSide + i % kBlockSide < frame_.width
          && row * kBlockSide + i / kBlockSide < frame_.height)
        inside |= 1U << i;
    return inside;
  }

  /// A batch of up to 16 pixels from anywhere in one row of blocks.
  struct Batch {
    alignas(64) std::int32_t x[kBlockPixels];
    alignas(64) std::int32_t y[kBlockPixels];
    int count = 0;
    int last_column = -1;
  };

  void smooth_row(int row) {
    const RowCandidates& candidates = picture_.rows[row & 1];
    find_edges(candidates, row);
    const int words[3] = {candidates.visible.words, candidates.mirrored.words,
                          candidates.shadowed.words};
    picture_.merged.assign(static_cast<std::size_t>(words[0] + words[1] + words[2]), 0);
    Batch batch;
    for (int column = 0; column < frame_.block_columns; ++column) {
      std::uint32_t left = picture_.edges[static_cast<std::size_t>(column)];
      while (left != 0) {
        if (batch.last_column != column) {
          merge(candidates, column);
          batch.last_column = column;
        }
        const int i = std::countr_zero(left);
        left &= left - 1;
        batch.x[batch.count] = column * kBlockSide + i % kBlockSide;
        batch.y[batch.count] = row * kBlockSide + i / kBlockSide;
        if (++batch.count == kBlockPixels)
          smooth_batch(candidates, batch);
      }
    }
    if (batch.count > 0)
      smooth_batch(candidates, batch);
  }

  void merge(const RowCandidates& candidates, int column) {
    std::uint64_t* to = picture_.merged.data();
    for (const RowItems* items :
         {&candidates.visible, &candidates.mirrored, &candidates.shadowed}) {
      const std::uint64_t* from = items->block(column);
      for (int word = 0; word < items->words; ++word)
        *to++ |= from[word];
    }
  }

  void smooth_batch(const RowCandidates& row, Batch& batch) {
    const int count = batch.count;
    for (int i = count; i < kBlockPixels; ++i) {
      batch.x[i] = batch.x[count - 1];
      batch.y[i] = batch.y[count - 1];
    }
    const std::uint64_t* masks = picture_.merged.data();
    const Candidates candidates{
        items_of(row.visible, masks), items_of(row.mirrored, masks + row.visible.words),
        items_of(row.shadowed, masks + row.visible.words + row.mirrored.words)};
    const PixelGrid grid{picture_.keys.data(), picture_.colours.data(), picture_.stride};
    for (int lane = 0; lane < count; lane += kLanes<Real>) {
      alignas(64) std::int32_t colours[kLanes<Real>];
      const Integer x = load_int<Real>(batch.x + lane);
      const Integer y = load_int<Real>(batch.y + lane);
      const Integer index = (y + Integer(1)) * Integer(grid.stride) + x + Integer(Picture::kPad);
      store(smooth_pixels<Real>(shader_, candidates, grid, x, y, index,
                                [&]() HWY_ATTR { return gather(picture_.sky.data(), index); }),
            colours);
      for (int i = 0; i < kLanes<Real> && lane + i < count; ++i)
        picture_.smooth[picture_.at(batch.x[lane + i], batch.y[lane + i])] = colours[i];
    }
    std::fill(picture_.merged.begin(), picture_.merged.end(), 0);
    batch.count = 0;
    batch.last_column = -1;
  }

  const Frame& frame_;
  Picture& picture_;
  Shader<kOrthographic> shader_{frame_};
};

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif

#include "replay/chunks/picture_pack.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace troupe::replay {

namespace {

using Byte = unsigned char; // arithmetic on it vectorises

constexpr std::size_t kBlock = 32;
constexpr std::size_t kGroup = 8 * kBlock;
constexpr std::size_t kPredictors = 7;
constexpr Byte kNothingFollows = 0x80;

/// The distances to the pixels that predict a pixel, in bytes before it.
struct Distances {
  std::size_t line = 0;
  std::size_t plane = 0;
};

constexpr bool needs_before(std::size_t predictor) {
  return predictor == 3 || predictor == 4 || predictor == 6;
}

/// True if the pixels that this predictor uses exist for all pixels of the group at `at` and are
/// decoded before the group's blocks need them.
bool predicts(std::size_t predictor, const Distances& d, std::size_t at, bool alone) {
  const bool line = predictor == 1 || predictor == 3 || predictor >= 5;
  const bool plane = predictor == 2 || predictor == 4 || predictor >= 5;
  return predictor < kPredictors && !(alone && needs_before(predictor))
         && (!line || d.line >= kBlock) && (!plane || d.plane >= kBlock)
         && at >= (line ? d.line : 0) + (plane ? d.plane : 0);
}

/// Predicts the pixel at `p`. `b` is the same position in the previous row.
template <std::size_t kPredictor, bool kAlone>
Byte predicted(const Byte* p, const Byte* b, const Distances& d) {
  if constexpr (kPredictor == 0)
    return kAlone ? Byte{0} : *b;
  else if constexpr (kPredictor == 1)
    return *(p - d.line);
  else if constexpr (kPredictor == 2)
    return *(p - d.plane);
  else if constexpr (kPredictor == 3)
    return static_cast<Byte>(*b + *(p - d.line) - *(b - d.line));
  else if constexpr (kPredictor == 4)
    return static_cast<Byte>(*b + *(p - d.plane) - *(b - d.plane));
  else if constexpr (kPredictor == 5)
    return static_cast<Byte>(*(p - d.line) + *(p - d.plane) - *(p - d.plane - d.line));
  else
    return static_cast<Byte>(*b + *(p - d.line) - *(b - d.line) + *(p - d.plane) - *(b - d.plane)
                             - *(p - d.plane - d.line) + *(b - d.plane - d.line));
}

/// Calls work.template operator()<predictor, alone>().
template <class Work>
auto with(std::size_t predictor, bool alone, Work&& work) {
  switch (alone ? predictor + kPredictors : predictor) {
  case 0:
    return work.template operator()<0, false>();
  case 1:
  case kPredictors + 1:
    return work.template operator()<1, false>();
  case 2:
  case kPredictors + 2:
    return work.template operator()<2, false>();
  case 3:
    return work.template operator()<3, false>();
  case 4:
    return work.template operator()<4, false>();
  case 5:
  case kPredictors + 5:
    return work.template operator()<5, false>();
  case 6:
    return work.template operator()<6, false>();
  default:
    return work.template operator()<0, true>();
  }
}

constexpr std::uint64_t each_byte(std::uint64_t byte) {
  return byte * 0x0101010101010101U;
}

std::uint64_t load(const Byte* p) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}

/// The differences of one block.
struct Differences {
  std::array<std::uint64_t, 4> words{};

  void read(unsigned width, const Byte* from) {
    if (width == 1) {
      for (std::size_t k = 0; k < 4; ++k)
        words[k] = load(from) >> 2 * k & each_byte(3);
    } else if (width == 2) {
      for (std::size_t k = 0; k < 4; ++k)
        words[k] = load(from + k % 2 * 8) >> k / 2 * 4 & each_byte(15);
    } else {
      std::memcpy(words.data(), from, kBlock);
    }
    for (std::uint64_t& word : words) {
      const std::uint64_t sign = word & each_byte(1);
      word = (word >> 1 & each_byte(0x7f)) ^ ((sign << 8) - sign);
    }
  }

  /// Returns the number of bytes written.
  std::size_t write(unsigned width, Byte* to) const {
    if (width == 3) {
      std::memcpy(to, words.data(), kBlock);
    } else if (width == 2) {
      const std::uint64_t halves[2] = {words[0] | words[2] << 4, words[1] | words[3] << 4};
      std::memcpy(to, halves, sizeof halves);
    } else if (width == 1) {
      const std::uint64_t all = words[0] | words[1] << 2 | words[2] << 4 | words[3] << 6;
      std::memcpy(to, &all, sizeof all);
    }
    return width == 0 ? 0 : std::size_t{4} << width;
  }
};

std::size_t blocks_bytes(std::uint16_t widths) {
  const unsigned low = widths & 0x5555U;
  const unsigned high = widths >> 1 & 0x5555U;
  return static_cast<std::size_t>(8 * std::popcount(low & ~high) + 16 * std::popcount(high & ~low)
                                  + 32 * std::popcount(low & high));
}

/// A candidate encoding of a group of `size` bytes at `row`.
struct PackedGroup {
  std::uint16_t widths = 0;
  std::uint32_t cost = std::numeric_limits<std::uint32_t>::max();
  std::array<Differences, 8> blocks;

  template <std::size_t kPredictor, bool kAlone>
  void fill(const Byte* row, const Byte* before, std::size_t size, const Distances& d) {
    widths = 0;
    std::uint32_t sum = 0;
    for (std::size_t b = 0; b * kBlock < size; ++b) {
      Byte zigzag[kBlock] = {};
      const Byte* p = row + b * kBlock;
      const Byte* q = kAlone ? nullptr : before + b * kBlock;
      const std::size_t count = std::min(kBlock, size - b * kBlock);
      for (std::size_t k = 0; k < count; ++k) {
        const auto difference = static_cast<Byte>(
            p[k] - predicted<kPredictor, kAlone>(p + k, kAlone ? nullptr : q + k, d));
        zigzag[k] = static_cast<Byte>(difference << 1 ^ (difference >= 128 ? 0xff : 0));
      }
      Byte bits = 0;
      for (const Byte z : zigzag) {
        bits |= z;
        sum += z;
      }
      widths = static_cast<std::uint16_t>(widths
                                          | (bits == 0   ? 0U
                                             : bits < 4  ? 1U
                                             : bits < 16 ? 2U
                                                         : 3U)
                                                << 2 * b);
      std::memcpy(blocks[b].words.data(), zigzag, kBlock);
    }
    cost = static_cast<std::uint32_t>(16 * blocks_bytes(widths)) + sum;
  }
};

/// Unpacks a group of `size` bytes. The caller has checked that its blocks are complete.
template <std::size_t kPredictor, bool kAlone>
void unpack_group(std::uint16_t widths, const Byte* from, const Byte* before, Byte* out,
                  std::size_t size, const Distances& d) {
  for (std::size_t b = 0; b * kBlock < size; ++b) {
    const unsigned width = widths >> 2 * b & 3U;
    Differences differences;
    if (width != 0) {
      differences.read(width, from);
      from += std::size_t{4} << width;
    }
    Byte block[kBlock];
    std::memcpy(block, differences.words.data(), kBlock);
    Byte* p = out + b * kBlock;
    const Byte* q = kAlone ? nullptr : before + b * kBlock;
    const std::size_t left = size - b * kBlock;
    if (left >= kBlock) {
      for (std::size_t k = 0; k < kBlock; ++k)
        block[k] = static_cast<Byte>(
            block[k] + predicted<kPredictor, kAlone>(p + k, kAlone ? nullptr : q + k, d));
      std::memcpy(p, block, kBlock);
    } else {
      for (std::size_t k = 0; k < left; ++k)
        p[k] = static_cast<Byte>(
            block[k] + predicted<kPredictor, kAlone>(p + k, kAlone ? nullptr : q + k, d));
    }
  }
}

const Byte* picture_bytes(const std::byte* p) {
  return reinterpret_cast<const Byte*>(p);
}

} // namespace

std::size_t packed_bound(std::size_t row_bytes) {
  return (row_bytes + kGroup - 1) / kGroup * (kGroup + 3);
}

std::size_t pack_picture(const ColumnShape& shape, const std::byte* before, const std::byte* row,
                         std::byte* out) {
  const Distances d{shape.line_bytes, shape.plane_bytes};
  const bool alone = before == nullptr;
  Byte* to = reinterpret_cast<Byte*>(out);
  PackedGroup tries[2];
  for (std::size_t at = 0; at < shape.row_bytes; at += kGroup) {
    const std::size_t size = std::min(kGroup, shape.row_bytes - at);
    std::size_t best = 0;
    std::size_t kept = 0; // index of the best one in `tries`
    tries[0].cost = std::numeric_limits<std::uint32_t>::max();
    for (std::size_t predictor = 0; predictor < kPredictors; ++predictor) {
      if (!predicts(predictor, d, at, alone))
        continue;
      PackedGroup& other = tries[1 - kept];
      with(predictor, alone, [&]<std::size_t kPredictor, bool kAlone>() {
        other.fill<kPredictor, kAlone>(picture_bytes(row) + at,
                                       alone ? nullptr : picture_bytes(before) + at, size, d);
      });
      if (other.cost < tries[kept].cost) {
        kept = 1 - kept;
        best = predictor;
      }
      if (tries[kept].cost == 0)
        break;
    }
    const PackedGroup& group = tries[kept];
    if (group.widths == 0) {
      *to++ = static_cast<Byte>(best | kNothingFollows);
      continue;
    }
    *to++ = static_cast<Byte>(best);
    std::memcpy(to, &group.widths, sizeof group.widths);
    to += sizeof group.widths;
    for (std::size_t b = 0; b * kBlock < size; ++b)
      to += group.blocks[b].write(group.widths >> 2 * b & 3U, to);
  }
  return static_cast<std::size_t>(to - reinterpret_cast<Byte*>(out));
}

bool unpack_picture(const ColumnShape& shape, const std::byte* before,
                    std::span<const std::byte> packed, std::byte* out) {
  const Distances d{shape.line_bytes, shape.plane_bytes};
  const bool alone = before == nullptr;
  const Byte* from = picture_bytes(packed.data());
  const Byte* end = from + packed.size();
  for (std::size_t at = 0; at < shape.row_bytes; at += kGroup) {
    const std::size_t size = std::min(kGroup, shape.row_bytes - at);
    if (from == end)
      return false;
    const std::size_t predictor = *from & ~kNothingFollows;
    if (!predicts(predictor, d, at, alone))
      return false;
    std::uint16_t widths = 0;
    if ((*from++ & kNothingFollows) == 0) {
      if (end - from < static_cast<std::ptrdiff_t>(sizeof widths))
        return false;
      std::memcpy(&widths, from, sizeof widths);
      from += sizeof widths;
      widths &= static_cast<std::uint16_t>((1U << (size + kBlock - 1) / kBlock * 2) - 1);
    } else if (predictor == 0 && !alone) {
      std::memcpy(out + at, before + at, size);
      continue;
    }
    const std::size_t bytes = blocks_bytes(widths);
    if (static_cast<std::size_t>(end - from) < bytes)
      return false;
    with(predictor, alone, [&]<std::size_t kPredictor, bool kAlone>() {
      unpack_group<kPredictor, kAlone>(widths, from, alone ? nullptr : picture_bytes(before) + at,
                                       reinterpret_cast<Byte*>(out) + at, size, d);
    });
    from += bytes;
  }
  return from == end;
}

} // namespace troupe::replay

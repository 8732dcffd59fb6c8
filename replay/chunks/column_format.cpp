#include "replay/chunks/column_format.hpp"

#include <stdexcept>

#include <lz4.h>
#include <zstd.h>

namespace troupe::replay {

namespace {

constexpr int kWindowLog = 17;
constexpr int kZstdLevel = 1; // level 3 would save 1 % of the bytes and take a fifth longer

char* chars(std::byte* bytes) {
  return reinterpret_cast<char*>(bytes);
}
const char* chars(const std::byte* bytes) {
  return reinterpret_cast<const char*>(bytes);
}

} // namespace

KeyGroup key_group(std::size_t rows, std::size_t groups, std::size_t group) {
  const std::size_t begin = group * rows / groups;
  const std::size_t end = (group + 1) * rows / groups;
  return {begin, begin + (end - begin) / 2, end};
}

void CodecScratch::State::Free::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

void CodecScratch::State::Free::operator()(ZSTD_DCtx_s* context) const {
  ZSTD_freeDCtx(context);
}

ZSTD_CCtx_s& CodecScratch::State::writer() {
  if (compressor == nullptr) {
    compressor.reset(ZSTD_createCCtx());
    ZSTD_CCtx_setParameter(compressor.get(), ZSTD_c_compressionLevel, kZstdLevel);
    ZSTD_CCtx_setParameter(compressor.get(), ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(compressor.get(), ZSTD_c_windowLog, kWindowLog);
  }
  return *compressor;
}

ZSTD_DCtx_s& CodecScratch::State::reader() {
  if (decompressor == nullptr) {
    decompressor.reset(ZSTD_createDCtx());
    ZSTD_DCtx_setParameter(decompressor.get(), ZSTD_d_windowLogMax, kWindowLog);
  }
  return *decompressor;
}

void CodecScratch::State::begin_chain() {
  if (compressor != nullptr)
    ZSTD_CCtx_reset(compressor.get(), ZSTD_reset_session_only);
  if (decompressor != nullptr)
    ZSTD_DCtx_reset(decompressor.get(), ZSTD_reset_session_only);
}

std::span<const std::byte> CodecScratch::State::compress_next(std::span<const std::byte> from) {
  const std::size_t most = ZSTD_compressBound(from.size()) + 64;
  ZSTD_outBuffer out{room(packed, most), most, 0};
  ZSTD_inBuffer in{from.data(), from.size(), 0};
  const std::size_t left = ZSTD_compressStream2(&writer(), &out, &in, ZSTD_e_flush);
  if (left != 0)
    throw std::runtime_error(std::string("a column could not be compressed: zstd: ")
                             + ZSTD_getErrorName(left));
  return {packed.data(), out.pos};
}

std::size_t CodecScratch::State::decompress_next(std::span<const std::byte> from, std::byte* to,
                                                 std::size_t most) {
  ZSTD_outBuffer out{to, most, 0};
  ZSTD_inBuffer in{from.data(), from.size(), 0};
  while (in.pos < in.size || out.pos == out.size) {
    const std::size_t done = in.pos + out.pos;
    const std::size_t result = ZSTD_decompressStream(&reader(), &out, &in);
    if (ZSTD_isError(result) != 0 || in.pos + out.pos == done)
      return in.pos < in.size || ZSTD_isError(result) != 0 ? most + 1 : out.pos;
  }
  return out.pos;
}

std::span<const std::byte> CodecScratch::State::compress(Compression compression,
                                                         std::span<const std::byte> from,
                                                         bool chained) {
  if (compression == Compression::lz4) {
    const int size = static_cast<int>(from.size());
    const int most = LZ4_compressBound(size);
    std::byte* to = room(packed, static_cast<std::size_t>(most));
    const int written = LZ4_compress_default(chars(from.data()), chars(to), size, most);
    return {to, static_cast<std::size_t>(written)};
  }
  if (chained)
    return compress_next(from);
  const std::size_t most = ZSTD_compressBound(from.size());
  std::byte* to = room(packed, most);
  const std::size_t written = ZSTD_compress2(&writer(), to, most, from.data(), from.size());
  if (ZSTD_isError(written) != 0)
    throw std::runtime_error(std::string("a column could not be compressed: zstd: ")
                             + ZSTD_getErrorName(written));
  return {to, written};
}

std::size_t CodecScratch::State::decompress(Compression compression,
                                            std::span<const std::byte> from, std::byte* out,
                                            std::size_t most, bool chained) {
  if (compression == Compression::lz4) // a negative result becomes a large number
    return static_cast<std::size_t>(LZ4_decompress_safe(
        chars(from.data()), chars(out), static_cast<int>(from.size()), static_cast<int>(most)));
  if (chained)
    return decompress_next(from, out, most);
  return ZSTD_decompressDCtx(&reader(), out, most, from.data(), from.size());
}

} // namespace troupe::replay

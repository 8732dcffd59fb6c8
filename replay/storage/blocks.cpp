#include "replay/storage/blocks.hpp"

#include <cstring>
#include <stdexcept>

#include <zstd.h>

namespace troupe::replay {

namespace {
constexpr int kLevel = 1;
constexpr std::uint64_t kMostRatio = 32768; // of zstd: a block of 4 bytes repeats one 128 KiB times
} // namespace

BlockWriter::BlockWriter() : context_(ZSTD_createCCtx()) {
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
}

void BlockWriter::FreeContext::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

void BlockWriter::raw(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  bytes_.insert(bytes_.end(), bytes, bytes + size);
}

void BlockWriter::block(std::span<const std::byte> data) {
  const std::size_t at = bytes_.size();
  std::uint64_t sizes[2] = {data.size(), 0};
  bytes_.resize(at + sizeof sizes + ZSTD_compressBound(data.size()));
  const std::size_t written =
      ZSTD_compress2(context_.get(), bytes_.data() + at + sizeof sizes,
                     bytes_.size() - at - sizeof sizes, data.data(), data.size());
  if (ZSTD_isError(written) != 0)
    throw std::runtime_error(std::string("zstd: ") + ZSTD_getErrorName(written));
  sizes[1] = written;
  std::memcpy(bytes_.data() + at, sizes, sizeof sizes);
  bytes_.resize(at + sizeof sizes + written);
}

void BlockReader::fail(const std::string& why) const {
  throw std::runtime_error(source_ + " " + why + "; resume from another checkpoint");
}

void BlockReader::raw(void* data, std::uint64_t size) {
  if (size > left_.size())
    fail("is truncated");
  std::memcpy(data, left_.data(), size);
  left_ = left_.subspan(size);
}

std::uint64_t BlockReader::begin_block(std::uint64_t most) {
  std::uint64_t sizes[2] = {0, 0};
  raw(sizes, sizeof sizes);
  if (sizes[0] > most || sizes[0] / kMostRatio > sizes[1])
    fail("is damaged: it claims a block of " + std::to_string(sizes[0]) + " bytes");
  if (sizes[1] > left_.size())
    fail("is truncated");
  compressed_ = left_.first(sizes[1]);
  left_ = left_.subspan(sizes[1]);
  return sizes[0];
}

void BlockReader::unpack(void* data, std::uint64_t size) {
  const std::size_t got = ZSTD_decompress(data, size, compressed_.data(), compressed_.size());
  if (ZSTD_isError(got) != 0)
    fail(std::string("is damaged: ") + ZSTD_getErrorName(got));
  if (got != size)
    fail("is damaged: a block has the wrong length");
}

void BlockReader::end() const {
  if (!left_.empty())
    fail("is damaged: " + std::to_string(left_.size()) + " bytes follow its end");
}

} // namespace troupe::replay

#include "replay/block_file.hpp"

#include <stdexcept>

#include <zstd.h>

namespace troupe::replay {

namespace {
constexpr int kLevel = 1;
}

BlockWriter::BlockWriter(const std::string& path) : file_(path), context_(ZSTD_createCCtx()) {
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
}

void BlockWriter::FreeContext::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

void BlockWriter::block(const void* data, std::size_t size) {
  compressed_.resize(ZSTD_compressBound(size));
  const std::size_t written =
      ZSTD_compress2(context_.get(), compressed_.data(), compressed_.size(), data, size);
  if (ZSTD_isError(written) != 0)
    throw std::runtime_error(file_.partial().string() + ": zstd: " + ZSTD_getErrorName(written));
  const std::uint64_t sizes[2] = {size, written};
  raw(sizes, sizeof sizes);
  raw(compressed_.data(), written);
}

void BlockReader::fail(const std::string& why) const {
  throw std::runtime_error(path() + " " + why + "; resume from another checkpoint");
}

void BlockReader::raw(void* data, std::uint64_t size) {
  if (!file_.read(data, size))
    fail("is truncated");
}

std::uint64_t BlockReader::begin_block(std::uint64_t most) {
  std::uint64_t sizes[2] = {0, 0};
  raw(sizes, sizeof sizes);
  if (sizes[0] > most || sizes[1] > ZSTD_compressBound(sizes[0]))
    fail("is damaged: it claims a block of " + std::to_string(sizes[0]) + " bytes");
  if (sizes[1] > file_.left())
    fail("is truncated");
  compressed_.resize(sizes[1]);
  raw(compressed_.data(), sizes[1]);
  return sizes[0];
}

void BlockReader::unpack(void* data, std::uint64_t size) {
  const std::size_t got = ZSTD_decompress(data, size, compressed_.data(), compressed_.size());
  if (ZSTD_isError(got) != 0)
    fail(std::string("is damaged: ") + ZSTD_getErrorName(got));
  if (got != size)
    fail("is damaged: a block of another length");
}

void BlockReader::block(void* data, std::uint64_t size) {
  if (begin_block(size) != size)
    fail("is damaged: a block of another length");
  unpack(data, size);
}

void BlockReader::end() const {
  if (file_.left() != 0)
    fail("is damaged: " + std::to_string(file_.left()) + " bytes follow its end");
}

} // namespace troupe::replay

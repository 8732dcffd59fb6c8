#include "replay/block_file.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <unistd.h>

#include <zstd.h>

namespace troupe::replay {

namespace {
constexpr int kLevel = 1;
}

BlockWriter::BlockWriter(const std::string& path)
    : path_(path),
      temporary_(path + ".tmp"),
      file_(std::fopen(temporary_.c_str(), "wb")),
      context_(ZSTD_createCCtx()) {
  if (!file_)
    fail("cannot be created");
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
}

BlockWriter::~BlockWriter() {
  if (committed_)
    return;
  file_.reset();
  std::remove(temporary_.c_str());
}

void BlockWriter::FreeContext::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

void BlockWriter::fail(const std::string& what) const {
  throw std::runtime_error(temporary_ + " " + what + ": " + std::strerror(errno));
}

void BlockWriter::raw(const void* data, std::size_t size) {
  if (std::fwrite(data, 1, size, file_.get()) != size)
    fail("cannot be written");
}

void BlockWriter::block(const void* data, std::size_t size) {
  compressed_.resize(ZSTD_compressBound(size));
  const std::size_t written =
      ZSTD_compress2(context_.get(), compressed_.data(), compressed_.size(), data, size);
  if (ZSTD_isError(written) != 0)
    throw std::runtime_error(temporary_ + ": zstd: " + ZSTD_getErrorName(written));
  const std::uint64_t sizes[2] = {size, written};
  raw(sizes, sizeof sizes);
  raw(compressed_.data(), written);
}

void BlockWriter::commit() {
  if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0
      || std::fclose(file_.release()) != 0)
    fail("cannot be written");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail("cannot be renamed to " + path_);
  committed_ = true;
}

BlockReader::BlockReader(const std::string& path)
    : path_(path), file_(std::fopen(path.c_str(), "rb")) {
  if (!file_)
    throw std::runtime_error(path + " cannot be opened: " + std::strerror(errno));
  if (std::fseek(file_.get(), 0, SEEK_END) != 0 || (left_ = std::ftell(file_.get())) < 0
      || std::fseek(file_.get(), 0, SEEK_SET) != 0)
    fail("cannot be read");
}

void BlockReader::fail(const std::string& why) const {
  throw std::runtime_error(path_ + " " + why + "; resume from another checkpoint");
}

void BlockReader::raw(void* data, std::uint64_t size) {
  if (static_cast<std::uint64_t>(left_) < size || std::fread(data, 1, size, file_.get()) != size)
    fail("is truncated");
  left_ -= static_cast<long>(size);
}

std::uint64_t BlockReader::begin_block(std::uint64_t most) {
  std::uint64_t sizes[2] = {0, 0};
  raw(sizes, sizeof sizes);
  if (sizes[0] > most || sizes[1] > ZSTD_compressBound(sizes[0]))
    fail("is damaged: it claims a block of " + std::to_string(sizes[0]) + " bytes");
  if (sizes[1] > static_cast<std::uint64_t>(left_))
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
  if (left_ != 0)
    fail("is damaged: " + std::to_string(left_) + " bytes follow its end");
}

} // namespace troupe::replay

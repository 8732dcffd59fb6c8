#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct ZSTD_CCtx_s;

namespace troupe::replay {

/// Appends raw bytes and compressed blocks to bytes(). A block is [raw bytes u64][compressed bytes
/// u64][a zstd frame].
class BlockWriter {
public:
  BlockWriter();

  void raw(const void* data, std::size_t size);
  void block(std::span<const std::byte> data);
  const std::vector<std::byte>& bytes() const { return bytes_; }

private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  std::vector<std::byte> bytes_;
};

/// Reads the output of a BlockWriter, treating it as untrusted: checks every size against the size
/// that the caller expects and against the remaining bytes. Throws std::runtime_error naming
/// `source`, a path.
class BlockReader {
public:
  BlockReader(std::span<const std::byte> bytes, std::string source)
      : left_(bytes), source_(std::move(source)) {}

  const std::string& source() const { return source_; }

  [[noreturn]] void fail(const std::string& why) const;

  void raw(void* data, std::uint64_t size);

  /// Begins the next block and returns its unpacked size, which is at most `most`, and which its
  /// compressed bytes can have. unpack() must follow.
  std::uint64_t begin_block(std::uint64_t most);
  void unpack(void* data, std::uint64_t size);

  /// Reads a block of exactly `count` values. Allocates only if its compressed bytes can have that
  /// size.
  template <class Value>
  std::vector<Value> values(std::uint64_t count) {
    const std::uint64_t bytes = count * sizeof(Value);
    if (begin_block(bytes) != bytes)
      fail("is damaged: a block has the wrong length");
    std::vector<Value> all(count);
    unpack(all.data(), bytes);
    return all;
  }

  void end() const; // throws if any bytes are left

private:
  std::span<const std::byte> left_;
  std::span<const std::byte> compressed_; // of the block begun by begin_block()
  std::string source_;
};

} // namespace troupe::replay

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "env/whole_file.hpp"

struct ZSTD_CCtx_s;

namespace troupe::replay {

/// Writes a file of raw bytes and of blocks, [raw bytes u64][compressed bytes u64][a zstd frame
/// with its checksum]: whole or not at all (env::WholeFileWriter). Throws std::runtime_error naming
/// the file and the cause.
class BlockWriter {
public:
  explicit BlockWriter(const std::string& path);

  void raw(const void* data, std::size_t size) { file_.write(data, size); }
  void block(const void* data, std::size_t size);
  void commit() { file_.commit(); }

private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  env::WholeFileWriter file_;
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  std::vector<char> compressed_;
};

/// Reads such a file. No size in it is believed beyond what the caller expects and the file holds.
/// Throws std::runtime_error naming the file.
class BlockReader {
public:
  explicit BlockReader(const std::string& path) : file_(path) {}

  std::string path() const { return file_.path().string(); }

  [[noreturn]] void fail(const std::string& why) const;

  void raw(void* data, std::uint64_t size);

  /// The size of the coming block when unpacked, at most `most`; unpack() then gives its bytes.
  std::uint64_t begin_block(std::uint64_t most);
  void unpack(void* data, std::uint64_t size);

  /// A block of exactly this size.
  void block(void* data, std::uint64_t size);

  void end() const; // nothing follows

private:
  env::FileReader file_;
  std::vector<char> compressed_;
};

} // namespace troupe::replay

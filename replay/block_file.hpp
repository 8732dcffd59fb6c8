#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

struct ZSTD_CCtx_s;

namespace troupe::replay {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, CloseFile>;

/// Writes a file of raw bytes and of blocks, [raw bytes u64][compressed bytes u64][a zstd frame
/// with its checksum], beside `path` and renames it in commit(); without commit() nothing is left
/// of it. Throws std::runtime_error naming the file and the cause.
class BlockWriter {
public:
  explicit BlockWriter(const std::string& path);
  ~BlockWriter();
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  void raw(const void* data, std::size_t size);
  void block(const void* data, std::size_t size);
  void commit();

private:
  [[noreturn]] void fail(const std::string& what) const;

  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::string path_;
  std::string temporary_;
  FilePtr file_;
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  std::vector<char> compressed_;
  bool committed_ = false;
};

/// Reads such a file. No size in it is believed beyond what the caller expects and the file holds.
/// Throws std::runtime_error naming the file.
class BlockReader {
public:
  explicit BlockReader(const std::string& path);

  const std::string& path() const { return path_; }

  [[noreturn]] void fail(const std::string& why) const;

  void raw(void* data, std::uint64_t size);

  /// The size of the coming block when unpacked, at most `most`; unpack() then gives its bytes.
  std::uint64_t begin_block(std::uint64_t most);
  void unpack(void* data, std::uint64_t size);

  /// A block of exactly this size.
  void block(void* data, std::uint64_t size);

  void end() const; // nothing follows

private:
  std::string path_;
  FilePtr file_;
  long left_ = 0;
  std::vector<char> compressed_;
};

} // namespace troupe::replay

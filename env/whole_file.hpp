#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "env/sockets/descriptor.hpp"

namespace troupe::env {

/// Writes a file completely or not at all. The bytes go to `<path>.partial`. commit() synchronises
/// that file to the disk, renames it, and synchronises the folder so that the new name survives a
/// power cut. Without commit() an existing file stays as it was. Throws std::system_error naming
/// the file and the system's reason (a full disk, no permission).
class WholeFileWriter {
public:
  explicit WholeFileWriter(std::filesystem::path path);
  ~WholeFileWriter();
  WholeFileWriter(const WholeFileWriter&) = delete;
  WholeFileWriter& operator=(const WholeFileWriter&) = delete;

  void write(const void* data, std::size_t size);
  void commit();

  /// The temporary file, before it is renamed.
  const std::filesystem::path& partial() const { return partial_; }

private:
  std::filesystem::path path_;
  std::filesystem::path partial_;
  wire::Descriptor file_; // none after commit()
};

/// Appends to a file, which is created if it does not exist. Throws std::system_error naming the
/// file and the system's reason.
class FileAppender {
public:
  explicit FileAppender(std::filesystem::path path);

  /// When this returns, the bytes are on the disk.
  void append(const void* data, std::size_t size);

private:
  std::filesystem::path path_;
  wire::Descriptor file_;
};

/// Overwrites an existing file from its beginning. When this returns, the bytes are on the disk.
/// Throws std::system_error naming the file and the system's reason; the file is then partly
/// overwritten.
void overwrite_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// Waits until the names in `folder` are on the disk, for instance after a rename. Throws
/// std::system_error naming the folder.
void write_folder_to_disk(const std::filesystem::path& folder);

/// Reads a file from beginning to end. Throws std::system_error naming the file and the system's
/// reason.
class FileReader {
public:
  explicit FileReader(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }

  /// The number of bytes not yet read, judged by the file's size when it was opened.
  std::uint64_t left() const { return left_; }

  /// Reads exactly `size` bytes. Returns false, with `data` unspecified, if the file ends before
  /// that.
  [[nodiscard]] bool read(void* data, std::uint64_t size);

private:
  std::filesystem::path path_;
  wire::Descriptor file_;
  std::uint64_t left_ = 0;
};

} // namespace troupe::env

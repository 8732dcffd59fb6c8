#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

struct archive;

namespace troupe::learner::data {

/// Writes a tar archive (ustar, pax for long names) whose bytes depend only on the files added: it
/// records no times, owners or machine. Throws std::runtime_error naming the path and the reason.
class TarWriter {
public:
  explicit TarWriter(std::filesystem::path path);
  ~TarWriter();
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;

  void add(const std::string& name, std::span<const std::byte> bytes);
  void finish(); // flushes to the disk; nothing may be added after this

private:
  void check(int result, const char* what) const;

  std::filesystem::path path_;
  archive* tar_;
};

} // namespace troupe::learner::data

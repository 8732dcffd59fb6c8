#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::learner::transparent {

/// The files of a rank that is not to write any: each one it opens for writing is a nameless file
/// (in TMPDIR, else /tmp) that only this process sees and that goes when it ends, however it ends.
/// What it then reads, renames or removes under that name is the nameless file. Pipes, sockets,
/// devices, folders, /dev, /proc and /sys are left alone. Any thread.
class DivertedFiles {
public:
  static constexpr std::size_t kMost = 64; // kept readable; the oldest gives way

  explicit DivertedFiles(std::filesystem::path scratch) : scratch_(std::move(scratch)) {}

  /// As openat(2): a descriptor, or -1 and errno. Empty: not diverted, call the original.
  std::optional<int> open(int folder, const char* path, int flags);
  /// As fopen(3) takes it: the flags of a mode such as "w+e"; empty for one that is not valid.
  static std::optional<int> flags_of(const char* mode);

  /// As rename(2) and unlink(2). Of files that are not diverted nothing is done: rank 0 does it.
  std::optional<int> rename(const char* from, const char* to);
  std::optional<int> remove(const char* path);

private:
  struct Nameless {
    int descriptor = -1;
    std::uint64_t age = 0;
  };

  int reopen(int descriptor, int flags) const;
  int make(const char* path, int flags);
  void forget(const std::string& key);

  std::filesystem::path scratch_;
  std::mutex mutex_;
  std::map<std::string, Nameless> files_; // by absolute path; at most kMost
  std::uint64_t opened_ = 0;
};

} // namespace troupe::learner::transparent

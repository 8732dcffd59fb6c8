#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::learner::transparent {

/// The files of a rank that must not change any. Each file that it opens for writing is a nameless
/// one (in TMPDIR, else /tmp) that only this process sees and that ends with it; whatever it reads,
/// examines, renames or removes under that name is the nameless file. The folders that it makes
/// are names in here, in which files may be opened. What it removes on disk is no longer listed for
/// it, since std::filesystem::remove_all lists a folder until that is empty. On disk nothing is
/// made, renamed or removed: rank 0 does that. Pipes, sockets, devices, /dev, /proc, /sys, and
/// temporary files with a name of this rank alone (mkstemp, mkdtemp) are left alone. Any thread.
///
/// The functions behave as the system calls of the same name: a result, or -1 and errno. Without a
/// value nothing is diverted: call the original.
class DivertedFiles {
public:
  static constexpr std::size_t kMost = 64;        // kept readable; the oldest gives way
  static constexpr std::size_t kMostNames = 4096; // folders, and temporary names; likewise
  static constexpr std::size_t kMostRemoved = std::size_t{1} << 20; // no longer listed; likewise

  explicit DivertedFiles(std::filesystem::path scratch) : scratch_(std::move(scratch)) {}

  std::optional<int> open(int folder, const char* path, int flags);
  /// As fopen(3) takes it: the flags of a mode such as "w+e"; empty for one that is not valid.
  static std::optional<int> flags_of(const char* mode);

  std::optional<int> rename(int from_folder, const char* from, int to_folder, const char* to);
  std::optional<int> remove(int folder, const char* path);
  std::optional<int> make_folder(int folder, const char* path);
  std::optional<int> truncate(const char* path, off_t size);
  /// A second name, with a copy of the contents.
  std::optional<int> link(int from_folder, const char* from, int to_folder, const char* to);
  std::optional<int> symbolic_link(int folder, const char* path);

  /// Whether a listing of `folder` leaves out `name`, which this rank has removed. A file that
  /// rank 0 has made again under the name is listed.
  bool is_removed(int folder, const char* name);
  /// What stands for `path` when it is examined (stat, access): "" if that is the path itself.
  std::string stand_in(int folder, const char* path);
  /// A name that mkstemp or mkdtemp has made: changes of it happen on disk.
  void own(const char* path);

private:
  struct Nameless {
    int descriptor = -1;
    std::uint64_t age = 0;
  };
  using Names = std::map<std::string, std::uint64_t>; // by absolute path, with their age
  struct Identity {
    std::uint64_t inode = 0;
    std::int64_t born_seconds = 0, born_nanoseconds = 0; // 0 where the file system does not say
    bool operator==(const Identity&) const = default;
  };

  static std::optional<Identity> identity_of(const std::string& key);

  std::optional<int> divert(const std::string& key, int flags);
  int reopen(int descriptor, int flags) const;
  int make(const char* path, int flags);
  void keep(const std::string& key, int descriptor);
  void forget(const std::string& key);
  void move(const std::string& from, const std::string& to);
  void hide(const std::string& key);
  void note(Names& names, const std::string& key);
  bool is_own(const std::string& key) const;
  bool has_folder(const std::string& key) const; // on disk or in here
  bool is_left_alone(const std::string& key) const;

  std::filesystem::path scratch_;
  std::mutex mutex_;
  std::map<std::string, Nameless> files_; // by absolute path; at most kMost
  Names folders_;                         // that this rank has made
  Names own_;
  std::map<std::string, Identity> removed_; // on disk, by absolute path; at most kMostRemoved
  std::uint64_t opened_ = 0;
};

} // namespace troupe::learner::transparent

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::learner::transparent {

/// Diverts the writes of a rank that must not change any files. Each file that the rank opens for
/// writing becomes an unnamed file (in TMPDIR, else /tmp) that only this process sees and that ends
/// with it. Reading, examining, renaming or removing that name then affects the unnamed file.
/// Folders that the rank makes exist only as names in this object, in which files may be opened.
/// Files that it removes stay on disk but are no longer listed for it, because
/// std::filesystem::remove_all lists a folder until it is empty. Nothing on disk is made, renamed
/// or removed; rank 0 does that. Pipes, sockets, devices, /dev, /proc, /sys and temporary files
/// with a unique name (mkstemp, mkdtemp) are left alone. Any thread may call it.
///
/// The functions behave like the system calls of the same name and return a result, or -1 with
/// errno set. If they return nothing, the call is not diverted and the caller must call the
/// original.
class DivertedFiles {
public:
  static constexpr std::size_t kMost = 64;        // most files kept; the oldest is dropped
  static constexpr std::size_t kMostNames = 4096; // most folders and temporary names; likewise
  static constexpr std::size_t kMostRemoved = std::size_t{1} << 20; // most removed names; likewise

  explicit DivertedFiles(std::filesystem::path scratch) : scratch_(std::move(scratch)) {}

  std::optional<int> open(int folder, const char* path, int flags);
  /// Returns the open() flags for a mode of fopen(3) such as "w+e", or nothing if the mode is not
  /// valid.
  static std::optional<int> flags_of(const char* mode);

  std::optional<int> rename(int from_folder, const char* from, int to_folder, const char* to);
  std::optional<int> remove(int folder, const char* path);
  std::optional<int> make_folder(int folder, const char* path);
  std::optional<int> truncate(const char* path, off_t size);
  /// Makes a second name with a copy of the contents.
  std::optional<int> link(int from_folder, const char* from, int to_folder, const char* to);
  std::optional<int> symbolic_link(int folder, const char* path);

  /// Returns whether a listing of `folder` must omit `name` because this rank has removed it. If
  /// rank 0 has since made a new file with that name, it is listed.
  bool is_removed(int folder, const char* name);
  /// Returns the path to examine (stat, access) in place of `path`, or "" for `path` itself.
  std::string stand_in(int folder, const char* path);
  /// Registers a name made by mkstemp or mkdtemp. Its changes happen on disk.
  void own(const char* path);

private:
  struct Nameless {
    int descriptor = -1;
    std::uint64_t age = 0;
  };
  using Names = std::map<std::string, std::uint64_t>; // absolute path -> age
  struct Identity {
    std::uint64_t inode = 0;
    std::int64_t born_seconds = 0, born_nanoseconds = 0; // 0 if the file system does not provide it
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
  bool has_folder(const std::string& key) const; // on disk or in folders_
  bool is_left_alone(const std::string& key) const;

  std::filesystem::path scratch_;
  std::mutex mutex_;
  std::map<std::string, Nameless> files_; // by absolute path; at most kMost
  Names folders_;                         // folders that this rank has made
  Names own_;
  std::map<std::string, Identity> removed_; // still on disk; by absolute path; at most kMostRemoved
  std::uint64_t opened_ = 0;
};

} // namespace troupe::learner::transparent

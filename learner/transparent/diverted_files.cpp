#include "learner/transparent/diverted_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

namespace troupe::learner::transparent {
namespace {

/// Opens a file without the C library's open(), which may be our own.
int plain_open(const char* path, int flags) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600));
}

/// Returns an absolute path without "." and "..", and without a trailing slash.
std::string key_of(int folder, const char* path) {
  std::filesystem::path full(path);
  std::error_code ignored;
  if (full.is_relative())
    full = (folder == AT_FDCWD
                ? std::filesystem::current_path(ignored)
                : std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(folder), ignored))
           / full;
  std::string key = full.lexically_normal().string();
  while (key.size() > 1 && key.back() == '/')
    key.pop_back();
  return key;
}

std::string parent_of(const std::string& key) {
  return std::filesystem::path(key).parent_path().string();
}

/// Returns a file's type without the C library's stat(), which may be our own.
std::optional<mode_t> type_of(const std::string& key, int flags = 0) {
  struct statx about {};
  if (::syscall(SYS_statx, AT_FDCWD, key.c_str(), flags, STATX_TYPE, &about) != 0)
    return std::nullopt;
  return about.stx_mode & S_IFMT;
}

bool is_reachable(const std::string& key, int rights) {
  return ::syscall(SYS_faccessat, AT_FDCWD, key.c_str(), rights) == 0;
}

bool is_of_system(const std::string& key) {
  for (const char* folder : {"/dev/", "/proc/", "/sys/"})
    if (key.starts_with(folder))
      return true;
  return false;
}

bool is_below(const std::string& key, const std::string& folder) {
  return key.size() > folder.size() && key.starts_with(folder) && key[folder.size()] == '/';
}

/// Takes the entries at `from` and below it out of `entries`, and returns them at `to`.
template <class Value>
std::map<std::string, Value> taken(std::map<std::string, Value>& entries, const std::string& from,
                                   const std::string& to) {
  std::map<std::string, Value> moved;
  for (auto at = entries.begin(); at != entries.end();) {
    const bool moves = at->first == from || is_below(at->first, from);
    if (moves)
      moved[to + at->first.substr(from.size())] = at->second;
    at = moves ? entries.erase(at) : std::next(at);
  }
  return moved;
}

int failed(int reason) {
  errno = reason;
  return -1;
}

/// Returns false if the source cannot be read or the copy cannot be written.
bool copy(const char* from, int to) {
  const int source = plain_open(from, O_RDONLY);
  if (source < 0)
    return errno == ENOENT;
  char bytes[1 << 16];
  ssize_t count = 0;
  bool written = true;
  while (written && (count = ::read(source, bytes, sizeof bytes)) > 0)
    for (ssize_t done = 0; written && done < count;) {
      const ssize_t more = ::write(to, bytes + done, static_cast<std::size_t>(count - done));
      written = more > 0;
      done += more;
    }
  ::close(source);
  return written && count == 0;
}

} // namespace

std::optional<int> DivertedFiles::flags_of(const char* mode) {
  const std::string text = mode ? mode : "";
  if (text.empty())
    return std::nullopt;
  int flags = 0;
  switch (text[0]) {
  case 'r':
    break;
  case 'w':
    flags = O_CREAT | O_TRUNC;
    break;
  case 'a':
    flags = O_CREAT | O_APPEND;
    break;
  default:
    return std::nullopt;
  }
  const bool both = text.find('+') != std::string::npos;
  flags |= both ? O_RDWR : text[0] == 'r' ? O_RDONLY : O_WRONLY;
  if (text.find('x') != std::string::npos)
    flags |= O_EXCL;
  if (text.find('e') != std::string::npos)
    flags |= O_CLOEXEC;
  return flags;
}

std::optional<int> DivertedFiles::open(int folder, const char* path, int flags) {
  if (!path || (flags & (O_DIRECTORY | O_PATH)) != 0)
    return std::nullopt;
  const std::string key = key_of(folder, path);
  const std::lock_guard lock(mutex_);
  if (const auto known = files_.find(key); known != files_.end())
    return reopen(known->second.descriptor, flags);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  return writes ? divert(key, flags) : std::nullopt;
}

/// Diverts a file that is opened for writing for the first time.
std::optional<int> DivertedFiles::divert(const std::string& key, int flags) {
  const auto type = type_of(key);
  if (is_left_alone(key) || (type && *type != S_IFREG))
    return std::nullopt;
  if (!type && ((flags & O_CREAT) == 0 || !has_folder(parent_of(key))))
    return std::nullopt; // the original call fails with the right errno
  if (type && !is_reachable(key, W_OK))
    return std::nullopt;
  const int made = make(key.c_str(), flags);
  if (made < 0)
    return -1;
  keep(key, made);
  return reopen(made, flags);
}

bool DivertedFiles::is_left_alone(const std::string& key) const {
  return is_of_system(key) || is_own(key);
}

bool DivertedFiles::is_own(const std::string& key) const {
  for (std::string at = key; at.size() > 1; at = parent_of(at))
    if (own_.contains(at))
      return true;
  return false;
}

/// A folder that this rank has removed counts, because the program may have found it again before
/// rank 0 removed it.
bool DivertedFiles::has_folder(const std::string& key) const {
  return folders_.contains(key) || removed_.contains(key)
         || (type_of(key) == S_IFDIR && is_reachable(key, W_OK | X_OK));
}

void DivertedFiles::note(Names& names, const std::string& key) {
  if (names.size() >= kMostNames)
    names.erase(std::min_element(names.begin(), names.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; }));
  names[key] = ++opened_;
}

void DivertedFiles::keep(const std::string& key, int descriptor) {
  forget(key);
  removed_.erase(key);
  if (files_.size() >= kMost)
    forget(std::min_element(files_.begin(), files_.end(), [](const auto& a, const auto& b) {
             return a.second.age < b.second.age;
           })->first);
  files_[key] = {descriptor, ++opened_};
}

int DivertedFiles::reopen(int descriptor, int flags) const {
  const std::string name = "/proc/self/fd/" + std::to_string(descriptor);
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, name.c_str(),
                                    flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW), 0600));
}

int DivertedFiles::make(const char* path, int flags) {
  std::string name;
  int made = -1;
  do { // not mkostemp(), which may be our own
    name =
        (scratch_
         / ("troupe_transparent_" + std::to_string(::getpid()) + "_" + std::to_string(++opened_)))
            .string();
    made = plain_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL);
  } while (made < 0 && errno == EEXIST);
  if (made < 0)
    return -1;
  ::syscall(SYS_unlinkat, AT_FDCWD, name.c_str(), 0);
  if ((flags & O_TRUNC) == 0 && !copy(path, made)) {
    const int reason = errno;
    ::close(made);
    errno = reason;
    return -1;
  }
  return made;
}

void DivertedFiles::forget(const std::string& key) {
  if (const auto known = files_.find(key); known != files_.end()) {
    ::close(known->second.descriptor);
    files_.erase(known);
  }
}

std::optional<DivertedFiles::Identity> DivertedFiles::identity_of(const std::string& key) {
  struct statx about {};
  if (::syscall(SYS_statx, AT_FDCWD, key.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME,
                &about)
      != 0)
    return std::nullopt;
  Identity made{.inode = about.stx_ino};
  if ((about.stx_mask & STATX_BTIME) != 0) {
    made.born_seconds = about.stx_btime.tv_sec;
    made.born_nanoseconds = about.stx_btime.tv_nsec;
  }
  return made;
}

/// Hides a name. Names below a folder stay hidden, also when this rank makes the folder again.
void DivertedFiles::hide(const std::string& key) {
  if (removed_.size() >= kMostRemoved)
    removed_.erase(removed_.begin());
  if (const auto identity = identity_of(key))
    removed_[key] = *identity;
}

/// Renames the diverted files and folders at `from` and below it to `to`.
void DivertedFiles::move(const std::string& from, const std::string& to) {
  const auto moved = taken(files_, from, to);
  forget(to);
  for (const auto& [key, file] : moved) {
    forget(key);
    files_[key] = file;
  }
  folders_.merge(taken(folders_, from, to));
}

std::optional<int> DivertedFiles::rename(int from_folder, const char* from, int to_folder,
                                         const char* to) {
  if (!from || !to)
    return std::nullopt;
  const std::string source = key_of(from_folder, from);
  const std::string target = key_of(to_folder, to);
  const std::lock_guard lock(mutex_);
  if (is_of_system(source) || (is_own(source) && is_own(target)))
    return std::nullopt;
  if (!is_own(source)) {
    move(source, target);
    hide(source);
    removed_.erase(target);
    return 0;
  }
  // The program wrote to a temporary name first. The contents of that file are kept.
  const int contents = plain_open(source.c_str(), O_RDWR);
  if (contents < 0)
    return type_of(source, AT_SYMLINK_NOFOLLOW) ? 0 : failed(ENOENT);
  keep(target, contents);
  ::syscall(SYS_unlinkat, AT_FDCWD, source.c_str(), 0);
  own_.erase(source);
  return 0;
}

std::optional<int> DivertedFiles::remove(int folder, const char* path) {
  if (!path)
    return std::nullopt;
  const std::string key = key_of(folder, path);
  const std::lock_guard lock(mutex_);
  const auto type = type_of(key, AT_SYMLINK_NOFOLLOW);
  const bool is_file = !type || *type == S_IFREG || *type == S_IFLNK || *type == S_IFDIR;
  if (is_left_alone(key) || !is_file) {
    own_.erase(key);
    return std::nullopt;
  }
  forget(key);
  folders_.erase(key);
  std::erase_if(folders_, [&](const auto& made) { return is_below(made.first, key); });
  std::vector<std::string> below;
  for (const auto& [file, nameless] : files_)
    if (is_below(file, key))
      below.push_back(file);
  for (const std::string& file : below)
    forget(file);
  hide(key);
  return 0;
}

bool DivertedFiles::is_removed(int folder, const char* name) {
  if (std::string_view(name) == "." || std::string_view(name) == "..")
    return false;
  {
    const std::lock_guard lock(mutex_);
    if (removed_.empty())
      return false;
  }
  const std::string key = key_of(folder, name); // without the lock: it may call our lstat()
  const std::lock_guard lock(mutex_);
  const auto known = removed_.find(key);
  if (known == removed_.end())
    return false;
  if (identity_of(known->first) == known->second)
    return true;
  removed_.erase(known); // rank 0 has made a new file
  return false;
}

std::optional<int> DivertedFiles::make_folder(int folder, const char* path) {
  if (!path)
    return std::nullopt;
  const std::string key = key_of(folder, path);
  const std::lock_guard lock(mutex_);
  if (is_left_alone(key))
    return std::nullopt;
  const auto type = type_of(key);
  if ((type && *type != S_IFDIR) || files_.contains(key))
    return failed(EEXIST);
  if (!type && !has_folder(parent_of(key)))
    return failed(type_of(parent_of(key)) ? EACCES : ENOENT);
  note(folders_, key); // succeeds even if rank 0 was faster
  removed_.erase(key);
  return 0;
}

std::optional<int> DivertedFiles::truncate(const char* path, off_t size) {
  const auto opened = open(AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
  if (!opened || *opened < 0)
    return opened;
  const int result = ::ftruncate(*opened, size);
  const int reason = errno;
  ::close(*opened);
  errno = reason;
  return result;
}

std::optional<int> DivertedFiles::link(int from_folder, const char* from, int to_folder,
                                       const char* to) {
  if (!from || !to)
    return std::nullopt;
  const std::string source = key_of(from_folder, from);
  const std::string target = key_of(to_folder, to);
  const std::lock_guard lock(mutex_);
  if (is_own(target) || is_of_system(target))
    return std::nullopt;
  const auto known = files_.find(source);
  if (known == files_.end() && type_of(source) != S_IFREG)
    return type_of(source) ? 0 : failed(ENOENT);
  const std::string name =
      known == files_.end() ? source : "/proc/self/fd/" + std::to_string(known->second.descriptor);
  const int made = make(name.c_str(), O_RDWR);
  if (made < 0)
    return -1;
  keep(target, made);
  return 0;
}

std::optional<int> DivertedFiles::symbolic_link(int folder, const char* path) {
  if (!path)
    return std::nullopt;
  const std::string key = key_of(folder, path); // without the lock: it may call our lstat()
  const std::lock_guard lock(mutex_);
  return is_left_alone(key) ? std::nullopt : std::optional<int>(0);
}

std::string DivertedFiles::stand_in(int folder, const char* path) {
  if (!path || *path == '\0')
    return "";
  const std::string key = key_of(folder, path);
  const std::lock_guard lock(mutex_);
  if (const auto known = files_.find(key); known != files_.end())
    return "/proc/self/fd/" + std::to_string(known->second.descriptor);
  return folders_.contains(key) && !type_of(key) ? scratch_.string() : "";
}

void DivertedFiles::own(const char* path) {
  const std::lock_guard lock(mutex_);
  note(own_, key_of(AT_FDCWD, path));
}

} // namespace troupe::learner::transparent

#include "learner/transparent/diverted_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace troupe::learner::transparent {
namespace {

/// Not through the C library's open(), which may be ours.
int plain_open(const char* path, int flags) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600));
}

std::string key_of(int folder, const char* path) {
  std::filesystem::path full(path);
  std::error_code ignored;
  if (full.is_relative())
    full = (folder == AT_FDCWD
                ? std::filesystem::current_path(ignored)
                : std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(folder), ignored))
           / full;
  return full.lexically_normal().string();
}

bool is_special(const std::string& key) {
  for (const char* folder : {"/dev/", "/proc/", "/sys/"})
    if (key.starts_with(folder))
      return true;
  struct stat about {};
  return ::stat(key.c_str(), &about) == 0 && !S_ISREG(about.st_mode);
}

/// False: the source cannot be read.
bool copy(const char* from, int to) {
  const int source = plain_open(from, O_RDONLY);
  if (source < 0)
    return errno == ENOENT;
  char bytes[1 << 16];
  ssize_t count = 0;
  while ((count = ::read(source, bytes, sizeof bytes)) > 0)
    for (ssize_t written = 0; written < count;) {
      const ssize_t more = ::write(to, bytes + written, static_cast<std::size_t>(count - written));
      if (more <= 0) {
        count = -1;
        break;
      }
      written += more;
    }
  ::close(source);
  return count == 0;
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
  if (!writes || is_special(key))
    return std::nullopt;
  struct stat about {};
  const bool exists = ::stat(key.c_str(), &about) == 0;
  const std::string parent = std::filesystem::path(key).parent_path().string();
  if (!exists && ((flags & O_CREAT) == 0 || ::access(parent.c_str(), W_OK | X_OK) != 0))
    return std::nullopt; // fails, and says why
  if (exists && ::access(key.c_str(), W_OK) != 0)
    return std::nullopt;
  const int made = make(key.c_str(), flags);
  if (made < 0)
    return -1;
  if (files_.size() >= kMost)
    forget(std::min_element(files_.begin(), files_.end(), [](const auto& a, const auto& b) {
             return a.second.age < b.second.age;
           })->first);
  files_[key] = {made, ++opened_};
  return reopen(made, flags);
}

int DivertedFiles::reopen(int descriptor, int flags) const {
  const std::string name = "/proc/self/fd/" + std::to_string(descriptor);
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, name.c_str(),
                                    flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW), 0600));
}

int DivertedFiles::make(const char* path, int flags) {
  std::string name = (scratch_ / "troupe_transparent_XXXXXX").string();
  const int made = ::mkostemp(name.data(), O_CLOEXEC);
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

std::optional<int> DivertedFiles::rename(const char* from, const char* to) {
  if (!from || !to || is_special(key_of(AT_FDCWD, from)))
    return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (const auto known = files_.find(key_of(AT_FDCWD, from)); known != files_.end()) {
    const Nameless file = known->second;
    files_.erase(known);
    forget(key_of(AT_FDCWD, to));
    files_[key_of(AT_FDCWD, to)] = file;
  }
  return 0;
}

std::optional<int> DivertedFiles::remove(const char* path) {
  if (!path || is_special(key_of(AT_FDCWD, path)))
    return std::nullopt;
  const std::lock_guard lock(mutex_);
  forget(key_of(AT_FDCWD, path));
  return 0;
}

} // namespace troupe::learner::transparent

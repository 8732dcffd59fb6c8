// The functions of the C library by which a program opens, renames and removes files. They do what
// they always do until divert_writes(true).
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "learner/transparent/diverted_files.hpp"
#include "learner/transparent/preload.hpp"

namespace troupe::learner::transparent {
namespace {

std::atomic<DivertedFiles*> diverted = nullptr; // set once, before main; never destroyed

template <class Function>
Function original(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

using Open = int (*)(const char*, int, ...);
using OpenAt = int (*)(int, const char*, int, ...);

int open_file(int folder, const char* path, int flags, mode_t mode, OpenAt theirs) {
  if (DivertedFiles* const files = diverted)
    if (const auto descriptor = files->open(folder, path, flags))
      return *descriptor;
  return theirs(folder, path, flags, mode);
}

/// The third argument of open(), there when a file may be made.
mode_t mode_of(int flags, std::va_list arguments) {
  const bool given = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return given ? va_arg(arguments, mode_t) : 0;
}

using OpenStream = std::FILE* (*)(const char*, const char*);

std::FILE* open_stream(const char* path, const char* mode, OpenStream theirs) {
  DivertedFiles* const files = diverted;
  const auto flags = files ? DivertedFiles::flags_of(mode) : std::nullopt;
  const auto descriptor = flags ? files->open(AT_FDCWD, path, *flags) : std::nullopt;
  if (!descriptor)
    return theirs(path, mode);
  return *descriptor < 0 ? nullptr : ::fdopen(*descriptor, mode);
}

} // namespace

void divert_writes(bool asked) {
  const char* const folder = std::getenv("TMPDIR");
  if (asked)
    diverted = new DivertedFiles(folder && *folder ? folder : "/tmp");
}

} // namespace troupe::learner::transparent

using namespace troupe::learner::transparent;

#define TROUPE_EXPORT extern "C" __attribute__((visibility("default")))

#define TROUPE_OPEN(name, name_at)                                                                 \
  TROUPE_EXPORT int name(const char* path, int flags, ...) {                                       \
    std::va_list arguments;                                                                        \
    va_start(arguments, flags);                                                                    \
    const mode_t mode = mode_of(flags, arguments);                                                 \
    va_end(arguments);                                                                             \
    static const auto theirs = original<OpenAt>(#name_at);                                         \
    return open_file(AT_FDCWD, path, flags, mode, theirs);                                         \
  }                                                                                                \
  TROUPE_EXPORT int name_at(int folder, const char* path, int flags, ...) {                        \
    std::va_list arguments;                                                                        \
    va_start(arguments, flags);                                                                    \
    const mode_t mode = mode_of(flags, arguments);                                                 \
    va_end(arguments);                                                                             \
    static const auto theirs = original<OpenAt>(#name_at);                                         \
    return open_file(folder, path, flags, mode, theirs);                                           \
  }                                                                                                \
  TROUPE_EXPORT int __##name##_2(const char* path, int flags) {                                    \
    static const auto theirs = original<OpenAt>(#name_at);                                         \
    return open_file(AT_FDCWD, path, flags, 0, theirs);                                            \
  }

TROUPE_OPEN(open, openat)
TROUPE_OPEN(open64, openat64)
#undef TROUPE_OPEN

TROUPE_EXPORT int creat(const char* path, mode_t mode) {
  return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

TROUPE_EXPORT int creat64(const char* path, mode_t mode) {
  return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

TROUPE_EXPORT std::FILE* fopen(const char* path, const char* mode) {
  static const auto theirs = original<OpenStream>("fopen");
  return open_stream(path, mode, theirs);
}

TROUPE_EXPORT std::FILE* fopen64(const char* path, const char* mode) {
  static const auto theirs = original<OpenStream>("fopen64");
  return open_stream(path, mode, theirs);
}

TROUPE_EXPORT int rename(const char* from, const char* to) noexcept {
  static const auto theirs = original<int (*)(const char*, const char*)>("rename");
  DivertedFiles* const files = diverted;
  const auto done = files ? files->rename(from, to) : std::nullopt;
  return done ? *done : theirs(from, to);
}

TROUPE_EXPORT int unlink(const char* path) noexcept {
  static const auto theirs = original<int (*)(const char*)>("unlink");
  DivertedFiles* const files = diverted;
  const auto done = files ? files->remove(path) : std::nullopt;
  return done ? *done : theirs(path);
}

TROUPE_EXPORT int remove(const char* path) noexcept {
  static const auto theirs = original<int (*)(const char*)>("remove");
  DivertedFiles* const files = diverted;
  const auto done = files ? files->remove(path) : std::nullopt;
  return done ? *done : theirs(path);
}

/// Folders are made by every rank; that another was faster is no failure.
TROUPE_EXPORT int mkdir(const char* path, mode_t mode) noexcept {
  static const auto theirs = original<int (*)(const char*, mode_t)>("mkdir");
  const int failed = theirs(path, mode);
  return failed != 0 && diverted && errno == EEXIST ? 0 : failed;
}

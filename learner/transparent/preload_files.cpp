// Replaces the C library's functions that open, examine, rename and remove files. They behave as
// usual until divert_writes(true) is called.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

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

/// Returns the third argument of open(), which exists if a file may be created.
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

using ReopenStream = std::FILE* (*)(const char*, const char*, std::FILE*);

std::FILE* reopen_stream(const char* path, const char* mode, std::FILE* stream,
                         ReopenStream theirs) {
  DivertedFiles* const files = diverted;
  const auto flags = files && path ? DivertedFiles::flags_of(mode) : std::nullopt;
  const auto descriptor = flags ? files->open(AT_FDCWD, path, *flags) : std::nullopt;
  if (!descriptor)
    return theirs(path, mode, stream);
  if (*descriptor < 0) {
    std::fclose(stream);
    return nullptr;
  }
  const std::string name = "/proc/self/fd/" + std::to_string(*descriptor);
  std::FILE* const reopened = theirs(name.c_str(), mode, stream);
  ::close(*descriptor);
  return reopened;
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

TROUPE_EXPORT std::FILE* freopen(const char* path, const char* mode, std::FILE* stream) {
  static const auto theirs = original<ReopenStream>("freopen");
  return reopen_stream(path, mode, stream, theirs);
}

TROUPE_EXPORT std::FILE* freopen64(const char* path, const char* mode, std::FILE* stream) {
  static const auto theirs = original<ReopenStream>("freopen64");
  return reopen_stream(path, mode, stream, theirs);
}

// Each of these functions returns DivertedFiles' result or, if the call is not diverted, calls the
// original.
#define TROUPE_CHANGE(name, parameters, arguments, diverted_call)                                  \
  TROUPE_EXPORT int name parameters noexcept {                                                     \
    static const auto theirs = original<int(*) parameters>(#name);                                 \
    DivertedFiles* const files = diverted;                                                         \
    const auto done = files ? files->diverted_call : std::nullopt;                                 \
    return done ? *done : theirs arguments;                                                        \
  }

TROUPE_CHANGE(rename, (const char* from, const char* to), (from, to),
              rename(AT_FDCWD, from, AT_FDCWD, to))
TROUPE_CHANGE(renameat, (int folder, const char* from, int to_folder, const char* to),
              (folder, from, to_folder, to), rename(folder, from, to_folder, to))
TROUPE_CHANGE(renameat2,
              (int folder, const char* from, int to_folder, const char* to, unsigned flags),
              (folder, from, to_folder, to, flags), rename(folder, from, to_folder, to))
TROUPE_CHANGE(unlink, (const char* path), (path), remove(AT_FDCWD, path))
TROUPE_CHANGE(unlinkat, (int folder, const char* path, int flags), (folder, path, flags),
              remove(folder, path))
TROUPE_CHANGE(remove, (const char* path), (path), remove(AT_FDCWD, path))
TROUPE_CHANGE(rmdir, (const char* path), (path), remove(AT_FDCWD, path))
TROUPE_CHANGE(mkdir, (const char* path, mode_t mode), (path, mode), make_folder(AT_FDCWD, path))
TROUPE_CHANGE(mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode),
              make_folder(folder, path))
TROUPE_CHANGE(link, (const char* from, const char* to), (from, to),
              link(AT_FDCWD, from, AT_FDCWD, to))
TROUPE_CHANGE(linkat, (int folder, const char* from, int to_folder, const char* to, int flags),
              (folder, from, to_folder, to, flags), link(folder, from, to_folder, to))
TROUPE_CHANGE(symlink, (const char* text, const char* path), (text, path),
              symbolic_link(AT_FDCWD, path))
TROUPE_CHANGE(symlinkat, (const char* text, int folder, const char* path), (text, folder, path),
              symbolic_link(folder, path))
TROUPE_CHANGE(truncate, (const char* path, off_t size), (path, size), truncate(path, size))
TROUPE_CHANGE(truncate64, (const char* path, off64_t size), (path, size), truncate(path, size))
#undef TROUPE_CHANGE

// Listings of folders omit the files that this rank has removed.
#define TROUPE_LIST(name, entry)                                                                   \
  TROUPE_EXPORT struct entry* name(DIR* folder) {                                                  \
    static const auto theirs = original<struct entry* (*)(DIR*)>(#name);                           \
    DivertedFiles* const files = diverted;                                                         \
    for (;;) {                                                                                     \
      struct entry* const found = theirs(folder);                                                  \
      if (!found || !files)                                                                        \
        return found;                                                                              \
      const int before = errno; /* which tells the caller a failure from the end */                \
      const bool removed = files->is_removed(::dirfd(folder), found->d_name);                      \
      errno = before;                                                                              \
      if (!removed)                                                                                \
        return found;                                                                              \
    }                                                                                              \
  }

TROUPE_LIST(readdir, dirent)
TROUPE_LIST(readdir64, dirent64)
#undef TROUPE_LIST

// Diverted files are examined in DivertedFiles. `follows` is the variant of the function that
// follows links.
#define TROUPE_LOOK(name, follows, parameters, arguments, folder, stand_in_arguments)              \
  TROUPE_EXPORT int name parameters noexcept {                                                     \
    DivertedFiles* const files = diverted;                                                         \
    const std::string stand_in = files ? files->stand_in(folder, path) : "";                       \
    static const auto theirs = original<int(*) parameters>(#name);                                 \
    if (stand_in.empty())                                                                          \
      return theirs arguments;                                                                     \
    static const auto following = original<int(*) parameters>(#follows);                           \
    path = stand_in.c_str();                                                                       \
    return following stand_in_arguments;                                                           \
  }
#define TROUPE_STAT(size)                                                                          \
  TROUPE_LOOK(stat##size, stat##size, (const char* path, struct stat##size* about), (path, about), \
              AT_FDCWD, (path, about))                                                             \
  TROUPE_LOOK(lstat##size, stat##size, (const char* path, struct stat##size* about),               \
              (path, about), AT_FDCWD, (path, about))                                              \
  TROUPE_LOOK(fstatat##size, fstatat##size,                                                        \
              (int folder, const char* path, struct stat##size* about, int flags),                 \
              (folder, path, about, flags), folder,                                                \
              (folder, path, about, flags & ~AT_SYMLINK_NOFOLLOW))                                 \
  TROUPE_LOOK(__xstat##size, __xstat##size,                                                        \
              (int version, const char* path, struct stat##size* about), (version, path, about),   \
              AT_FDCWD, (version, path, about))                                                    \
  TROUPE_LOOK(__lxstat##size, __xstat##size,                                                       \
              (int version, const char* path, struct stat##size* about), (version, path, about),   \
              AT_FDCWD, (version, path, about))

TROUPE_STAT()
TROUPE_STAT(64)
TROUPE_LOOK(statx, statx,
            (int folder, const char* path, int flags, unsigned mask, struct statx* about),
            (folder, path, flags, mask, about), folder,
            (folder, path, flags & ~AT_SYMLINK_NOFOLLOW, mask, about))
TROUPE_LOOK(access, access, (const char* path, int rights), (path, rights), AT_FDCWD,
            (path, rights))
TROUPE_LOOK(faccessat, faccessat, (int folder, const char* path, int rights, int flags),
            (folder, path, rights, flags), folder, (folder, path, rights, flags))
#undef TROUPE_STAT
#undef TROUPE_LOOK

// Names that no other rank has. Changes to these files happen on disk.
#define TROUPE_OWN(name, result, parameters, arguments, path, made)                                \
  TROUPE_EXPORT result name parameters {                                                           \
    static const auto theirs = original<result(*) parameters>(#name);                              \
    const auto got = theirs arguments;                                                             \
    if (DivertedFiles* const files = diverted; files && made)                                      \
      files->own(path);                                                                            \
    return got;                                                                                    \
  }
#define TROUPE_TEMPORARY(size)                                                                     \
  TROUPE_OWN(mkstemp##size, int, (char* name), (name), name, got >= 0)                             \
  TROUPE_OWN(mkostemp##size, int, (char* name, int flags), (name, flags), name, got >= 0)          \
  TROUPE_OWN(mkstemps##size, int, (char* name, int suffix), (name, suffix), name, got >= 0)        \
  TROUPE_OWN(mkostemps##size, int, (char* name, int suffix, int flags), (name, suffix, flags),     \
             name, got >= 0)

TROUPE_TEMPORARY()
TROUPE_TEMPORARY(64)
TROUPE_OWN(mkdtemp, char*, (char* name), (name), name, got != nullptr)
#undef TROUPE_TEMPORARY
#undef TROUPE_OWN

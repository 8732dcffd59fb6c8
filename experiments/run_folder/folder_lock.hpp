#pragma once

#include <filesystem>
#include <string>

namespace troupe::experiments {

/// A lock on the file <folder>/lock, which ensures that only one process works in a folder. The
/// kernel releases it when the process dies. It is an F_OFD_SETLK lock, because F_OFD_GETLK can
/// test it without taking it. If another process holds the lock, throws std::runtime_error with the
/// folder, `what` ("this run") and the process.
class FolderLock {
public:
  FolderLock(const std::filesystem::path& folder, const std::string& what);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

private:
  int handle_;
};

/// Throws std::runtime_error with the path, what failed, the system's reason and a remedy.
[[noreturn]] void fail_at(const std::filesystem::path& path, const std::string& what, int error);

/// A remedy for an errno: "; free some space …". Empty if none is known.
std::string way_out(int error);

} // namespace troupe::experiments

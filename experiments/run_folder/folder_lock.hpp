#pragma once

#include <filesystem>
#include <string>

namespace troupe::experiments {

/// A folder that one process works in: a lock on <folder>/lock, which the kernel releases when the
/// process dies. It is an F_OFD_SETLK lock, because F_OFD_GETLK asks about it without taking it.
/// Throws std::runtime_error, naming the folder, `what` ("this run") and the process, when another
/// holds it.
class FolderLock {
public:
  FolderLock(const std::filesystem::path& folder, const std::string& what);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

private:
  int handle_;
};

/// Throws std::runtime_error: the path, what failed, the system's reason and the way out.
[[noreturn]] void fail_at(const std::filesystem::path& path, const std::string& what, int error);

/// "; free some space …", empty where no advice is known for the errno.
std::string way_out(int error);

} // namespace troupe::experiments

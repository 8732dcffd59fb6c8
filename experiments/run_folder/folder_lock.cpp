#include "experiments/run_folder/folder_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace troupe::experiments {

std::string way_out(int error) {
  if (error == ENOSPC || error == EDQUOT) {
    return "; free some space or name another folder with --runs";
  }
  if (error == EACCES || error == EROFS || error == EPERM || error == ENOTDIR) {
    return "; name a folder of yours with --runs";
  }
  return "";
}

void fail_at(const std::filesystem::path& path, const std::string& what, int error) {
  throw std::runtime_error(path.string() + ": " + what + ": " + std::strerror(error)
                           + way_out(error));
}

FolderLock::FolderLock(const std::filesystem::path& folder, const std::string& what) : handle_(-1) {
  const auto file = folder / "lock";
  const int handle = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (handle < 0) {
    fail_at(file, "cannot be opened", errno);
  }
  struct flock whole {};
  whole.l_type = F_WRLCK;
  if (::fcntl(handle, F_OFD_SETLK, &whole) != 0) {
    const int error = errno == EACCES ? EWOULDBLOCK : errno;
    char holder[32] = {};
    const ssize_t count = ::pread(handle, holder, sizeof holder - 1, 0);
    ::close(handle);
    if (error != EWOULDBLOCK) {
      fail_at(file, "cannot be locked", error);
    }
    throw std::runtime_error(folder.string() + ": another process works on " + what + " (process "
                             + std::string(holder, count > 0 ? static_cast<std::size_t>(count) : 0)
                             + "); wait for it or stop it");
  }
  const std::string process = std::to_string(::getpid());
  if (::ftruncate(handle, 0) != 0
      || ::pwrite(handle, process.data(), process.size(), 0)
             != static_cast<ssize_t>(process.size())) {
    const int error = errno;
    ::close(handle);
    fail_at(file, "cannot be written", error);
  }
  handle_ = handle;
}

FolderLock::FolderLock(FolderLock&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}

FolderLock::~FolderLock() {
  if (handle_ >= 0) {
    ::close(handle_);
  }
}

} // namespace troupe::experiments

#include "learner/data/pictures/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "learner/data/pictures/data_error.hpp"

namespace troupe::learner::data {
namespace {

constexpr int kTries = 5;
constexpr std::chrono::milliseconds kFirstPause{100}; // doubles each time: 1.5 s in total

/// Whether the path is at fault, rather than the disk or the network file system.
bool is_of_path(int reason) {
  for (const int one : {ENOENT, EACCES, EPERM, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG, EINVAL, ENXIO})
    if (reason == one)
      return true;
  return false;
}

/// Repeats a system call if a signal interrupts it, and up to kTries times if the system fails.
/// Returns its result; a result below 0 means failure, with errno set.
template <class Call>
auto tried(Call call) {
  auto pause = kFirstPause;
  for (int tries = 1;;) {
    const auto result = call();
    if (result >= 0 || is_of_path(errno))
      return result;
    if (errno == EINTR)
      continue;
    if (tries++ == kTries)
      return result;
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& reason) {
  throw DataError(path.string() + ": cannot be read: " + reason);
}

std::string reason_text(int reason) {
  return std::generic_category().message(reason);
}

[[noreturn]] void fail_of_system(const std::filesystem::path& path, int reason) {
  if (is_of_path(reason))
    fail(path, reason_text(reason));
  throw ReadError(path.string() + ": cannot be read: " + reason_text(reason) + ", in "
                  + std::to_string(kTries)
                  + " attempts; check the disk or the network file system, then resume");
}

} // namespace

File::File(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = tried([&] { return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC); });
  struct stat about {};
  if (descriptor_ < 0 || tried([&] { return ::fstat(descriptor_, &about); }) != 0) {
    const int reason = errno;
    if (descriptor_ >= 0)
      ::close(descriptor_);
    fail_of_system(path_, reason);
  }
  if (S_ISDIR(about.st_mode)) {
    ::close(descriptor_);
    fail(path_, "it is a folder");
  }
  size_ = static_cast<std::uint64_t>(about.st_size);
}

File::~File() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

void File::read(std::uint64_t offset, std::uint64_t size, std::vector<std::byte>& out) const {
  if (offset > size_ || size > size_ - offset)
    fail(path_, "it ends at byte " + std::to_string(size_) + ", and bytes " + std::to_string(offset)
                    + " to " + std::to_string(offset + size) + " are needed (truncated?)");
  out.resize(size);
  for (std::uint64_t done = 0; done < size;) {
    const auto got = tried([&] {
      return ::pread(descriptor_, out.data() + done, size - done,
                     static_cast<off_t>(offset + done));
    });
    if (got < 0)
      fail_of_system(path_, errno);
    if (got == 0)
      fail(path_, "it shrank while it was being read");
    done += static_cast<std::uint64_t>(got);
  }
}

std::vector<std::filesystem::path> list_files(const std::filesystem::path& folder, bool deep,
                                              bool (*wanted)(const std::string& name)) {
  std::vector<std::filesystem::path> files;
  try {
    for (auto entry = std::filesystem::recursive_directory_iterator(
             folder, std::filesystem::directory_options::follow_directory_symlink);
         entry != std::filesystem::recursive_directory_iterator(); ++entry) {
      if (entry.depth() > 32)
        fail(folder, "its folders are more than 32 deep (a link to itself?)");
      if (!deep)
        entry.disable_recursion_pending();
      const auto name = entry->path().filename().string();
      if (entry->is_regular_file() && !name.starts_with('.') && wanted(name))
        files.push_back(entry->path());
    }
  } catch (const std::filesystem::filesystem_error& error) {
    fail(folder, error.code().message());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> list_folders(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  try {
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.is_directory() && !entry.path().filename().string().starts_with('.'))
        names.push_back(entry.path().filename().string());
  } catch (const std::filesystem::filesystem_error& error) {
    fail(folder, error.code().message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return lines;
  const File file(path);
  std::vector<std::byte> bytes;
  file.read(0, file.size(), bytes);
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  for (std::string line; std::getline(text, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' '))
      line.pop_back();
    if (!line.empty())
      lines.push_back(line);
  }
  return lines;
}

} // namespace troupe::learner::data

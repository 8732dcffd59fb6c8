#include "env/whole_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace troupe::env {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void complain(const std::string& what, const fs::path& path) {
  throw std::system_error(errno, std::generic_category(), what + " " + path.string());
}

void write_all(const wire::Descriptor& file, const void* data, std::size_t size,
               const fs::path& path) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(file.number(), at, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      complain("cannot write", path);
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

} // namespace

void write_folder_to_disk(const fs::path& folder) {
  const wire::Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened)
    complain("cannot open the folder", folder);
  if (::fsync(opened.number()) != 0)
    complain("cannot flush the folder", folder);
}

WholeFileWriter::WholeFileWriter(fs::path path)
    : path_(std::move(path)),
      partial_(path_.string() + ".partial"),
      file_(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (!file_)
    complain("cannot create", partial_);
}

WholeFileWriter::~WholeFileWriter() {
  if (file_)
    ::unlink(partial_.c_str());
}

void WholeFileWriter::write(const void* data, std::size_t size) {
  write_all(file_, data, size, partial_);
}

void WholeFileWriter::commit() {
  if (::fsync(file_.number()) != 0)
    complain("cannot write", partial_);
  if (::rename(partial_.c_str(), path_.c_str()) != 0)
    complain("cannot rename " + partial_.string() + " to", path_);
  file_ = {};
  write_folder_to_disk(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
}

FileAppender::FileAppender(fs::path path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!file_)
    complain("cannot create", path_);
}

void FileAppender::append(const void* data, std::size_t size) {
  write_all(file_, data, size, path_);
  if (::fdatasync(file_.number()) != 0)
    complain("cannot write to disk", path_);
}

void overwrite_file(const fs::path& path, std::span<const std::byte> bytes) {
  const wire::Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file)
    complain("cannot write", path);
  write_all(file, bytes.data(), bytes.size(), path);
  if (::fdatasync(file.number()) != 0)
    complain("cannot write to disk", path);
}

FileReader::FileReader(fs::path path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status {};
  if (!file_ || ::fstat(file_.number(), &status) != 0)
    complain("cannot read", path_);
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    complain("cannot read", path_);
  }
  left_ = static_cast<std::uint64_t>(status.st_size);
}

bool FileReader::read(void* data, std::uint64_t size) {
  if (size > left_)
    return false;
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(file_.number(), at, size);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      complain("cannot read", path_);
    if (got == 0)
      return false;
    at += got;
    size -= static_cast<std::uint64_t>(got);
    left_ -= static_cast<std::uint64_t>(got);
  }
  return true;
}

} // namespace troupe::env

#include "env/appended_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace troupe::env {

AppendedFile::AppendedFile(std::filesystem::path path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  if (!file_)
    throw std::runtime_error(path_.string() + ": cannot be written: " + std::strerror(errno));
}

bool AppendedFile::append(std::string record) {
  if (record.empty())
    return true;
  flush();
  if (bytes_ > 0 && bytes_ + record.size() > kMostWaiting) {
    ++dropped_;
    return false;
  }
  bytes_ += record.size();
  waiting_.push_back(std::move(record));
  if (waiting_.size() > 1 || !flush().empty())
    ++waited_;
  return true;
}

const std::string& AppendedFile::flush() {
  problem_.clear();
  while (!waiting_.empty() && problem_.empty()) {
    std::string& first = waiting_.front();
    const ::ssize_t written = ::write(file_.number(), first.data(), first.size());
    if (written <= 0) {
      if (written == 0 || errno != EINTR)
        problem_ =
            path_.string() + ": cannot be written: " + std::strerror(written == 0 ? ENOSPC : errno);
      continue;
    }
    bytes_ -= static_cast<std::size_t>(written);
    first.erase(0, static_cast<std::size_t>(written)); // a part if the disk filled up
    if (first.empty())
      waiting_.pop_front();
  }
  return problem_;
}

std::optional<std::string> AppendedFile::news() {
  flush();
  if (!problem_.empty() && !std::exchange(told_, true))
    return problem_ + "; up to " + std::to_string(kMostWaiting >> 20)
           + " MiB of records are kept in memory until it can be written";
  if (!problem_.empty() || (!told_ && waited_ + dropped_ == 0))
    return std::nullopt;
  told_ = false;
  return path_.string() + ": is written again; " + std::to_string(std::exchange(waited_, 0))
         + " records waited and " + std::to_string(std::exchange(dropped_, 0)) + " were dropped";
}

} // namespace troupe::env

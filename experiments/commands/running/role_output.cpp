#include "experiments/commands/running/role_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <system_error>
#include <utility>
#include <vector>

#include "experiments/run_folder/clock.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr std::size_t kLongestRoleLine = 1 << 16;

} // namespace

RoleOutput::RoleOutput(std::string node)
    : node_(std::move(node)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this](const std::stop_token& ended) { work(ended); }) {}

RoleOutput::~RoleOutput() {
  thread_.request_stop();
  ::eventfd_write(wake_, 1);
  thread_.join();
  for (auto& [handle, source] : sources_) {
    take(handle, *source);
    ::close(handle);
  }
  ::close(wake_);
}

int RoleOutput::attach(const std::filesystem::path& file) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return -1;
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  std::error_code ignored; // on failure the process's lines are lost
  std::filesystem::create_directories(file.parent_path(), ignored);
  {
    const std::scoped_lock lock(mutex_);
    sources_[ends[0]] = std::make_unique<Source>(Source{.file = RotatedFile(file), .rest = {}});
  }
  ::eventfd_write(wake_, 1);
  return ends[1];
}

void RoleOutput::write(Source& source, std::string_view line) const {
  source.file.write(log_time(std::chrono::system_clock::now()) + ' ' + node_ + ": "
                    + std::string(line));
}

bool RoleOutput::take(int handle, Source& source) const {
  std::array<char, 1 << 14> buffer;
  ssize_t count = 0;
  while ((count = ::read(handle, buffer.data(), buffer.size())) > 0) {
    source.rest.append(buffer.data(), static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (auto end = source.rest.find('\n'); end != std::string::npos;
         end = source.rest.find('\n', begin)) {
      write(source, std::string_view(source.rest).substr(begin, end - begin));
      begin = end + 1;
    }
    source.rest.erase(0, begin);
    if (source.rest.size() > kLongestRoleLine) {
      write(source, std::exchange(source.rest, {}));
    }
  }
  if (count == 0 && !source.rest.empty()) {
    write(source, std::exchange(source.rest, {}));
  }
  return count != 0;
}

void RoleOutput::work(const std::stop_token& ended) {
  while (!ended.stop_requested()) {
    std::vector<pollfd> waits{{.fd = wake_, .events = POLLIN, .revents = 0}};
    {
      const std::scoped_lock lock(mutex_);
      for (const auto& [handle, source] : sources_) {
        waits.push_back({.fd = handle, .events = POLLIN, .revents = 0});
      }
    }
    ::poll(waits.data(), waits.size(), -1);
    eventfd_t ignored = 0;
    ::eventfd_read(wake_, &ignored);
    for (std::size_t i = 1; i < waits.size(); ++i) {
      if (waits[i].revents == 0) {
        continue;
      }
      const std::scoped_lock lock(mutex_);
      const auto at = sources_.find(waits[i].fd);
      if (!take(at->first, *at->second)) {
        ::close(at->first);
        sources_.erase(at);
      }
    }
  }
}

} // namespace troupe::experiments::commands

#pragma once

#include <csignal>
#include <sys/resource.h>

namespace troupe {

/// While it exists, no file of this process grows beyond `bytes`, as on a full disk.
class FullDisk {
public:
  explicit FullDisk(rlim_t bytes = 0) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

private:
  void (*handler_)(int);
  rlimit before_{};
};

} // namespace troupe

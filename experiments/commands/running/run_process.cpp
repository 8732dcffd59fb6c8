#include "experiments/commands/running/run_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "env/processes/exec_words.hpp"
#include "env/processes/forked.hpp"
#include "experiments/launchers/how_it_ended.hpp"
#include "experiments/run_folder/folder_lock.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr std::streamoff kLastBytes = 1 << 14; // bytes searched for the last line

int open_file(const std::filesystem::path& path, int flags) {
  const int handle = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (handle < 0) {
    fail_at(path, "cannot be written", errno);
  }
  return handle;
}

} // namespace

std::string last_line(const std::filesystem::path& file, std::uintmax_t begin) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) {
    return "";
  }
  in.seekg(std::max(static_cast<std::streamoff>(begin),
                    static_cast<std::streamoff>(in.tellg()) - kLastBytes));
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) {
      last = line;
    }
  }
  return last;
}

RunProcess::RunProcess(const std::vector<std::string>& arguments,
                       const std::filesystem::path& output, const std::filesystem::path& errors) {
  std::vector<std::string> words = {"troupe"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> pointers = exec_words(words);
  const int in = open_file("/dev/null", O_RDWR);
  const int out = open_file(output, O_TRUNC);
  const int error = open_file(errors, O_APPEND);
  sigset_t none;
  ::sigemptyset(&none);
  process_ = start_child(SIGTERM, [&] {
    ::setpgid(0, 0);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(error, STDERR_FILENO);
    // A run must not keep the sockets of a dashboard in its parent.
    ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0U);
    ::execv("/proc/self/exe", pointers.data());
    ::_exit(127);
  });
  const int failure = errno;
  for (const int handle : {in, out, error}) {
    ::close(handle);
  }
  if (process_ < 0) {
    throw std::runtime_error(std::string("cannot start a run: ") + std::strerror(failure));
  }
  ended_ = watch_child(process_);
}

RunProcess::~RunProcess() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  ::close(ended_);
}

void RunProcess::send(int signal) const {
  if (process_ > 0) {
    ::kill(process_, signal);
  }
}

std::string RunProcess::wait() {
  siginfo_t about{};
  while (::waitid(P_PID, static_cast<id_t>(process_), &about, WEXITED) != 0 && errno == EINTR) {
  }
  process_ = -1;
  const bool good = about.si_code == CLD_EXITED && about.si_status == 0;
  return good ? "" : how_it_ended(about);
}

} // namespace troupe::experiments::commands

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::experiments::commands {

/// Runs this program with other arguments in a separate process group, so that the terminal's
/// signals do not reach it. The child gets SIGTERM when this process dies. Use from one thread.
class RunProcess {
public:
  /// Standard output goes to the new file `output`; standard error is appended to `errors`. There
  /// is no standard input. Throws std::runtime_error that names what failed.
  RunProcess(const std::vector<std::string>& arguments, const std::filesystem::path& output,
             const std::filesystem::path& errors);
  /// Kills the child if it is still running.
  ~RunProcess();
  RunProcess(const RunProcess&) = delete;
  RunProcess& operator=(const RunProcess&) = delete;

  /// A descriptor for poll() that is readable once the child has ended.
  int ended() const { return ended_; }
  void send(int signal) const;

  /// Waits for the child to end. Returns "" after exit code 0, otherwise "ended with exit code 1"
  /// or "was killed by signal 9 (Killed)".
  std::string wait();

private:
  pid_t process_ = -1;
  int ended_ = -1; // pidfd
};

/// The last non-empty line of a file after its first `begin` bytes; "" if there is none.
std::string last_line(const std::filesystem::path& file, std::uintmax_t begin);

} // namespace troupe::experiments::commands

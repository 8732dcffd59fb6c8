#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "env/processes/exec_words.hpp"
#include "tests/folders.hpp"
#include "tests/scoped_variable.hpp"

namespace troupe::experiments {

/// The real program (or a shell) in a separate process, with its output as it arrives and its exit
/// code.
class Program {
public:
  static constexpr std::chrono::seconds kDeadline{100};

  explicit Program(const std::vector<std::string>& words,
                   const std::filesystem::path& folder = ".") {
    int out[2];
    if (::pipe2(out, O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe2 failed");
    }
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(out[1], STDERR_FILENO);
      const ScopedVariable path("PATH", in_build() + ":" + std::string(std::getenv("PATH")));
      if (::chdir(folder.c_str()) == 0) {
        ::execvp(words[0].c_str(), exec_words(words).data());
      }
      ::_exit(127);
    }
    ::close(out[1]);
    out_ = out[0];
  }
  ~Program() {
    ::close(out_);
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int process() const { return process_; }
  const std::string& output() const { return text_; }
  void send(int signal) const { ::kill(process_, signal); }

  /// Reads until `done` is true of the output so far. Returns false if the program ends or the
  /// deadline passes first.
  bool read_until(const std::function<bool(const std::string&)>& done) {
    const auto limit = std::chrono::steady_clock::now() + kDeadline;
    while (!done(text_)) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          limit - std::chrono::steady_clock::now());
      pollfd ready{out_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) {
        return false;
      }
      char bytes[4096];
      const ssize_t count = ::read(out_, bytes, sizeof bytes);
      if (count <= 0) {
        return false;
      }
      text_.append(bytes, static_cast<std::size_t>(count));
    }
    return true;
  }

  /// Reads the remaining output and returns the exit code, or minus the signal that ended the
  /// program.
  int wait() {
    read_until([](const std::string&) { return false; });
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string last_line() const {
    const std::size_t end = text_.find_last_not_of('\n');
    const std::size_t begin = text_.rfind('\n', end);
    return end == std::string::npos ? "" : text_.substr(begin + 1, end - begin);
  }

private:
  pid_t process_ = -1;
  int out_ = -1;
  std::string text_;
};

struct Outcome {
  int exit_code = 0;
  std::string output;
  std::string last_line;
};

inline Outcome run_troupe(std::vector<std::string> words,
                          const std::filesystem::path& folder = ".") {
  words.insert(words.begin(), in_build("troupe"));
  Program program(words, folder);
  const int exit_code = program.wait();
  return {exit_code, program.output(), program.last_line()};
}

/// The JSON object at the end of a program's output.
inline nlohmann::json last_json(const std::string& output) {
  const std::size_t begin = output.rfind("\n{");
  return nlohmann::json::parse(
      output.substr(begin == std::string::npos ? output.find('{') : begin));
}

} // namespace troupe::experiments

#include "experiments/run_folder/origin.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "env/processes/start_program.hpp"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments {
namespace {

using Clock = std::chrono::steady_clock;
using OriginJson = nlohmann::ordered_json;

constexpr std::size_t kMostText = 64 << 10; // limit for the output of a program or a file
constexpr std::size_t kMostCommand = 4096;
constexpr std::size_t kShortCommit = 12;

/// Reads until the end or the deadline. Returns false if it did not reach the end.
bool read_all(int from, Clock::time_point deadline, std::string& text) {
  std::array<char, 4096> bytes{};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{from, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0 || text.size() > kMostText)
      return false;
    const ssize_t count = ::read(from, bytes.data(), bytes.size());
    if (count <= 0)
      return count == 0;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

/// The output of a program; nothing if the program is missing, fails or takes too long.
std::optional<std::string> output_of(const std::vector<std::string>& words,
                                     Clock::time_point deadline) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return std::nullopt;
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const pid_t child =
      start_program(words, {}, {.input = nothing, .output = ends[1], .error = nothing});
  ::close(nothing);
  ::close(ends[1]);
  const bool started = child > 0;
  std::string text;
  const bool whole = started && read_all(ends[0], deadline, text);
  ::close(ends[0]);
  if (!started)
    return std::nullopt;
  if (!whole)
    ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return whole && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::optional(text)
                                                                : std::nullopt;
}

std::string command_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(file), {}};
  while (words.ends_with('\0'))
    words.pop_back();
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words.substr(0, kMostCommand);
}

void ask_git(const std::string& folder, Origin& origin) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(2);
  const auto commit = output_of({"git", "-C", folder, "rev-parse", "--verify", "HEAD"}, deadline);
  if (!commit)
    return;
  // These options keep Git from starting any program that the repository names.
  const auto changes = output_of({"git", "-C", folder, "-c", "core.fsmonitor=false", "status",
                                  "--porcelain", "--untracked-files=no", "--ignore-submodules"},
                                 deadline);
  if (!changes)
    return;
  origin.commit = commit->substr(0, commit->find('\n'));
  origin.changed_files = static_cast<int>(std::count(changes->begin(), changes->end(), '\n'));
}

} // namespace

std::string Origin::commit_text() const {
  if (commit.empty())
    return "";
  return commit.substr(0, kShortCommit)
         + (changed_files == 0 ? ""
                               : " and " + std::to_string(changed_files) + " changed file"
                                     + (changed_files == 1 ? "" : "s"));
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(':') + 2));
  return "";
}

Origin present_origin(const std::string& version, const std::filesystem::path& folder) {
  Origin origin{.version = version,
                .command = command_words(),
                .processor = processor_name(),
                .cores = static_cast<int>(std::thread::hardware_concurrency()),
                .commit = {}};
  ask_git(folder.string(), origin);
  return origin;
}

void write_origin(const std::filesystem::path& run, const Origin& origin) {
  const OriginJson json = {
      {"version", origin.version},     {"command", origin.command},
      {"processor", origin.processor}, {"cores", origin.cores},
      {"commit", origin.commit},       {"changed_files", origin.changed_files}};
  write_text(run / "origin.json",
             json.dump(2, ' ', false, OriginJson::error_handler_t::replace) + "\n");
}

std::optional<Origin> read_origin(const std::filesystem::path& run) {
  std::ifstream file(run / "origin.json", std::ios::binary);
  std::string text(kMostText, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  const OriginJson json = OriginJson::parse(text, nullptr, false);
  const auto has = [&](const char* key, bool number) {
    return json.contains(key) && (number ? json[key].is_number_integer() : json[key].is_string());
  };
  if (!json.is_object() || !has("version", false) || !has("command", false)
      || !has("processor", false) || !has("cores", true) || !has("commit", false)
      || !has("changed_files", true))
    return std::nullopt;
  return Origin{.version = json["version"],
                .command = json["command"],
                .processor = json["processor"],
                .cores = json["cores"],
                .commit = json["commit"],
                .changed_files = json["changed_files"]};
}

} // namespace troupe::experiments

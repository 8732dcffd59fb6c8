#include "experiments/run_folder/run_logs.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <utility>

#include "env/text/number_in.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kTimeLength = 20; // "2026-11-21T10:00:00Z"
constexpr std::size_t kMostRest = 1 << 20;

const std::vector<std::string>& sources_known() {
  static const std::vector<std::string> names = {"head",    "replay",      "parameter_server",
                                                 "learner", "environment", "evaluator"};
  return names;
}

bool has_time(const std::string& line) {
  return line.size() > kTimeLength && line[4] == '-' && line[10] == 'T'
         && line[kTimeLength - 1] == 'Z' && line[kTimeLength] == ' ';
}

std::uint64_t inode_of(const fs::path& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 ? about.st_ino : 0;
}

std::uint64_t size_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

/// Returns the greatest number of bytes of each file with which they need at most `all` together.
std::uint64_t most_of_each(std::vector<std::uint64_t> sizes, std::uint64_t all) {
  std::sort(sizes.begin(), sizes.end());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::uint64_t share = all / (sizes.size() - i);
    if (sizes[i] > share) {
      return share;
    }
    all -= sizes[i];
  }
  return std::numeric_limits<std::uint64_t>::max();
}

/// The role and index in the name environment-3.log; the index is -1 if the name has another form.
std::pair<std::string, int> parse_name(const fs::path& path) {
  const std::string stem = path.stem().string();
  const auto dash = stem.rfind('-');
  const std::string number = dash == std::string::npos ? "" : stem.substr(dash + 1);
  return {stem.substr(0, dash), env::number_in<int>(number).value_or(-1)};
}

} // namespace

fs::path role_log(const fs::path& run, const std::string& role, int index) {
  return run / "logs" / (role + "-" + std::to_string(index) + ".log");
}

RunLogs::RunLogs(fs::path run, LogChoice choice, std::uint64_t most_bytes)
    : run_(std::move(run)), choice_(std::move(choice)), most_bytes_(most_bytes) {
  const std::string role = choice_.role.substr(0, choice_.role.find('/'));
  const auto& known = sources_known();
  if (!role.empty() && std::find(known.begin(), known.end(), role) == known.end()) {
    throw std::invalid_argument("--role " + choice_.role
                                + ": must be head, replay, parameter_server, learner, environment "
                                  "or evaluator, or one of them like environment/3");
  }
}

void RunLogs::take(const Source& source, LogLine line, std::vector<LogLine>& lines) const {
  std::string node;
  if (source.role != "head") { // "NODE: text"
    const auto colon = line.text.find(": ");
    node = colon == std::string::npos ? "" : line.text.substr(0, colon);
    line.text.erase(0, colon == std::string::npos ? 0 : colon + 2);
  }
  if (!choice_.node.empty() && node != choice_.node) {
    return;
  }
  if (source.role == "head") {
    line.who = "head";
  } else if (source.role == "node") {
    line.who = "node " + node;
  } else {
    line.who =
        source.role + "/" + std::to_string(source.index) + (node.empty() ? "" : " on " + node);
  }
  lines.push_back(std::move(line));
}

void RunLogs::read_file(const fs::path& path, std::uint64_t most, Source& source,
                        std::vector<LogLine>& lines) {
  const std::uint64_t size = size_of(path);
  if (size > source.at && size - source.at > most) {
    source.at = size - most;
    source.rest.clear();
    source.is_inside = true;
  }
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(source.at));
  char buffer[1 << 16];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    source.at += static_cast<std::uint64_t>(in.gcount());
    source.rest.append(buffer, static_cast<std::size_t>(in.gcount()));
    std::size_t begin = 0;
    for (auto end = source.rest.find('\n'); end != std::string::npos;
         end = source.rest.find('\n', begin)) {
      std::string line = source.rest.substr(begin, end - begin);
      begin = end + 1;
      if (std::exchange(source.is_inside, false)) {
        continue;
      }
      if (has_time(line)) {
        source.time = line.substr(0, kTimeLength);
        line.erase(0, kTimeLength + 1);
      }
      take(source, {.time = source.time, .who = {}, .text = std::move(line)}, lines);
    }
    source.rest.erase(0, begin);
    if (source.rest.size() > kMostRest) { // not one of our lines
      source.rest.clear();
    }
  }
}

std::vector<LogLine> RunLogs::read() {
  std::vector<std::pair<fs::path, Source>> there;
  const auto slash = choice_.role.find('/');
  const std::string role = choice_.role.substr(0, slash);
  if ((role.empty() || role == "head") && choice_.node.empty()) {
    there.push_back({run_ / "log.txt", {.role = "head"}});
  }
  if (role.empty()) {
    there.push_back({run_ / "nodes.log", {.role = "node"}});
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_ / "logs", error)) {
    const auto [name, index] = parse_name(entry.path());
    const std::string full = name + "/" + std::to_string(index);
    if (entry.path().extension() == ".log" && index >= 0
        && (role.empty() || (slash == std::string::npos ? name == role : full == choice_.role))) {
      there.push_back({entry.path(), {.role = name, .index = index}});
    }
  }
  std::vector<LogLine> lines;
  std::vector<std::uint64_t> sizes;
  for (const auto& [path, source] : there) {
    sizes.push_back(size_of(path) + size_of(path.string() + ".1"));
  }
  const std::uint64_t most = most_of_each(std::move(sizes), most_bytes_);
  for (auto& [path, made] : there) {
    const bool is_new = !sources_.contains(path);
    Source& source = sources_.try_emplace(path, std::move(made)).first->second;
    const std::uint64_t inode = inode_of(path);
    const fs::path older = path.string() + ".1";
    if (is_new && fs::exists(older, error)) {
      read_file(older, most - std::min(most, size_of(path)), source, lines);
    } else if (!is_new && inode != source.inode && inode_of(older) == source.inode) {
      read_file(older, most, source, lines); // the end of the file before it was rotated
    }
    if (inode != source.inode) {
      source.at = 0;
      source.rest.clear();
      source.is_inside = false;
      source.inode = inode;
    }
    read_file(path, most, source, lines);
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const LogLine& a, const LogLine& b) { return a.time < b.time; });
  return lines;
}

} // namespace troupe::experiments

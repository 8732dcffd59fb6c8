#include "experiments/dashboard/log_tail.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

namespace troupe::experiments::dashboard {
namespace {

constexpr std::size_t kMostLines = 20'000;
constexpr std::uint64_t kMostBytes = 4 << 20; // read at a time, of all files
constexpr std::size_t kPartOfLog = 64 << 10;
constexpr std::size_t kTime = 20; // length of "2026-11-21T10:00:00Z"

char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool has(const std::string& text, const std::string& part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower_case(a) == lower_case(b); })
         != text.end();
}

bool fits(const LogLine& line, const LogFilter& filter) {
  return (filter.who.empty() || has(line.who, filter.who))
         && (filter.contains.empty() || has(line.text, filter.contains))
         && (!filter.problems || !level_of(line).empty());
}

} // namespace

std::string level_of(const LogLine& line) {
  for (const char* level : {"error", "warning"}) {
    if (line.who == "head" && line.text.starts_with(std::string(level) + " ")) {
      return level;
    }
  }
  return "";
}

LogTail::LogTail(std::filesystem::path run) : logs_(std::move(run), {}, kMostBytes) {}

void LogTail::read() {
  for (LogLine& line : logs_.read()) {
    lines_.push_back(std::move(line));
    if (lines_.size() > kMostLines) {
      lines_.pop_front();
    }
  }
}

std::vector<LogLine> LogTail::lines(const LogFilter& filter) const {
  std::vector<LogLine> found;
  for (auto line = lines_.rbegin(); line != lines_.rend() && found.size() < filter.most; ++line) {
    if (fits(*line, filter)) {
      found.push_back(*line);
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

FirstProblem::FirstProblem(const std::filesystem::path& run) : file_(run / "log.txt") {}

void FirstProblem::take(std::string_view line) {
  if (!problem_.text.empty() || line.size() <= kTime || line[kTime - 1] != 'Z'
      || line[kTime] != ' ') {
    return;
  }
  LogLine made{.time = std::string(line.substr(0, kTime)),
               .who = "head",
               .text = std::string(line.substr(kTime + 1))};
  if (!level_of(made).empty()) {
    problem_ = std::move(made);
  }
}

const LogLine& FirstProblem::read() {
  std::ifstream in;
  std::string part(problem_.text.empty() ? kPartOfLog : 0, '\0');
  while (problem_.text.empty()) {
    in = std::ifstream(file_, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(at_));
    in.read(part.data(), static_cast<std::streamsize>(part.size()));
    std::string_view text(part.data(), static_cast<std::size_t>(in.gcount()));
    const bool is_full = text.size() == part.size();
    const std::size_t complete = text.rfind('\n') + 1;
    if (complete == 0 && !is_full) {
      break;
    }
    at_ += complete == 0 ? text.size() : complete; // a longer line is not one of ours
    for (text = text.substr(0, complete); !text.empty();) {
      const std::size_t end = text.find('\n');
      take(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
  }
  return problem_;
}

} // namespace troupe::experiments::dashboard

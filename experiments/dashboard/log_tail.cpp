#include "experiments/dashboard/log_tail.hpp"

#include <algorithm>
#include <utility>

namespace troupe::experiments::dashboard {
namespace {

constexpr std::size_t kMostLines = 20'000;

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

LogTail::LogTail(std::filesystem::path run) : logs_(std::move(run), {}) {}

void LogTail::read() {
  for (LogLine& line : logs_.read()) {
    if (first_problem_.text.empty() && !level_of(line).empty()) {
      first_problem_ = line;
    }
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

} // namespace troupe::experiments::dashboard

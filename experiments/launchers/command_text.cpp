#include "experiments/launchers/command_text.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace troupe::experiments::launchers {
namespace {

bool names_a_secret(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* word : {"secret", "token", "password"})
    if (name.find(word) != std::string::npos)
      return true;
  return false;
}

} // namespace

std::string quoted(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0
           || std::string_view("-_./:=,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain))
    return word;
  std::string result = "'";
  for (const char c : word) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  return result + "'";
}

std::string command_text(const std::vector<std::string>& words) {
  std::string text;
  bool hide = false;
  for (const std::string& word : words) {
    if (!text.empty())
      text += ' ';
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const bool secret = names_a_secret(name) && name.find('/') == std::string::npos;
    if (hide)
      text += "…";
    else if (secret && equals != std::string::npos)
      text += name + "=…";
    else
      text += quoted(word);
    hide = !hide && secret && equals == std::string::npos && name.starts_with("-");
  }
  return text;
}

std::string find_program(const std::string& name, const std::string& key,
                         const std::string& way_out) {
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), X_OK) == 0)
      return name;
    throw std::invalid_argument(std::string(key) + " is \"" + name + "\"; it must be a program; "
                                + way_out);
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  throw std::invalid_argument(std::string(key) + ": there is no program \"" + name
                              + "\" on the PATH; " + way_out);
}

namespace {

std::string name_of(const NodeStart& node) {
  std::string name = "node " + node.name;
  if (!node.host.empty() && node.host != node.name)
    name += " (" + node.host + ")";
  return name;
}

} // namespace

NodeEnd node_end(const NodeStart& node, const std::vector<std::string>& command,
                 const ChildProcesses::End& end) {
  NodeEnd result{.node = node.name, .good = end.good, .last_lines = end.last_lines};
  result.how = name_of(node) + ": `" + command_text(command) + "` " + end.how;
  if (!end.good && !end.last_lines.empty())
    result.how += ": " + end.last_lines.back();
  return result;
}

NodeEnd shell_end(const NodeStart& node, int exit_code, const std::string& last_line) {
  constexpr int kSignals = 128; // exit codes above it mean death by a signal
  constexpr int kLastSignal = 64;
  NodeEnd result{.node = node.name, .good = exit_code == 0};
  const int signal = exit_code - kSignals;
  result.how = name_of(node);
  if (signal > 0 && signal <= kLastSignal)
    result.how +=
        " was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  else
    result.how += " ended with exit code " + std::to_string(exit_code);
  if (!last_line.empty())
    result.last_lines.push_back(last_line);
  if (!result.good && !last_line.empty())
    result.how += ": " + last_line;
  return result;
}

} // namespace troupe::experiments::launchers

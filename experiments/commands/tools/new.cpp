#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/folders.hpp"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kLongestName = 64;

using Replacements = std::vector<std::pair<std::string, std::string>>;

/// A new project of a given kind is a copy of the example `own_<kind>`, with the new name in place
/// of the example's.
struct Template {
  std::string name;
  std::vector<std::string> files; // files of the example; "own" stands for the new name
};

const std::vector<Template> kTemplates = {
    {"experiment", {"own.textproto", "README.md"}},
    {"environment", {"CMakeLists.txt", "own.cpp", "own.textproto", "README.md"}},
    {"agent", {"CMakeLists.txt", "own.cpp", "own.textproto", "README.md"}},
    {"cluster", {"own.textproto", "README.md"}}};

/// Turns "push_hard" into "PushHard".
std::string class_name(const std::string& name) {
  std::string made;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') {
      made += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    }
    upper = c == '_';
  }
  return made;
}

/// Replaces the words in one pass, because the new name may contain one of them.
std::string replaced(const std::string& text, const Replacements& words) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    const auto word = std::find_if(words.begin(), words.end(), [&](const auto& one) {
      return text.compare(at, one.first.size(), one.first) == 0;
    });
    if (word == words.end()) {
      made += text[at++];
    } else {
      made += word->second;
      at += word->first.size();
    }
  }
  return made;
}

/// A name must be valid as a C++ namespace, a library, a task and a folder.
void check_name(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!plain || name.empty() || name.size() > kLongestName || name[0] < 'a') {
    throw std::invalid_argument("NAME is \"" + name
                                + "\"; it must be a to z, 0 to 9 and _, begin with a letter and "
                                  "have at most "
                                + std::to_string(kLongestName) + " characters");
  }
}

std::string contents_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) {
    throw std::runtime_error(file.string() + ": cannot be read; reinstall Troupe");
  }
  return text.str();
}

fs::path find_example(const std::string& example) {
  for (const fs::path& folder : found_folders("examples")) {
    if (std::error_code error; fs::is_directory(folder / example, error)) {
      return folder / example;
    }
  }
  throw std::runtime_error("the example " + example + " is not installed with this program ("
                           + found_folders("examples").front().string() + "); reinstall Troupe");
}

struct NewOptions {
  std::string kind;
  std::string name;
  std::string out;
};

void write_new(const NewOptions& options) {
  check_name(options.name);
  const auto kind = std::find_if(kTemplates.begin(), kTemplates.end(),
                                 [&](const Template& one) { return one.name == options.kind; });
  const std::string own = "own_" + kind->name;
  const fs::path example = find_example(own);
  const fs::path folder = options.out.empty() ? fs::path(options.name) : fs::path(options.out);
  std::error_code error;
  if (fs::exists(folder, error)) {
    throw std::invalid_argument(
        folder.string() + " already exists; choose another NAME, or another folder with --out");
  }
  const Replacements words = {{own, options.name},
                              {"push_to_middle", options.name},
                              {"PushToMiddle", class_name(options.name)},
                              {"own_td3", options.name}};
  fs::create_directories(folder);
  for (const std::string& file : kind->files) {
    const std::string name = file.starts_with("own.") ? own + file.substr(3) : file;
    write_text(folder / replaced(name, words), replaced(contents_of(example / name), words));
  }
  std::printf("%s\n", (folder / "README.md").c_str());
  std::ifstream readme(folder / "README.md");
  bool inside = false;
  for (std::string line; std::getline(readme, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
    } else if (inside) {
      std::printf("  %s\n", line.c_str());
    }
  }
}

} // namespace

void add_new(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "new", "Writes a folder with a working, commented experiment, environment, agent or cluster");
  command->footer("Example: troupe new environment balance_stick\n"
                  "README.md in the folder has the next commands, which are also printed.");
  auto options = std::make_shared<NewOptions>();
  command->add_option("KIND", options->kind, "what is written")
      ->required()
      ->check(CLI::IsMember({"experiment", "environment", "agent", "cluster"}));
  command->add_option("NAME", options->name, "name of what is written")->required();
  command->add_option("--out", options->out, "the new folder; default: NAME");
  command->callback([options] { write_new(*options); });
}

} // namespace troupe::experiments::commands

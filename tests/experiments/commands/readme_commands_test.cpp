#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include <regex>
#include <sstream>

#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments;

namespace {

/// The ```sh blocks of a README, in order.
std::vector<std::string> shell_blocks(const std::string& text) {
  std::vector<std::string> blocks;
  std::istringstream lines(text);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "```sh") {
      inside = true;
      blocks.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

} // namespace

TEST_CASE("Every command in the README succeeds") {
  const TemporaryFolder folder;
  const auto blocks = shell_blocks(read_text(in_source("experiments/README.md")));
  REQUIRE(blocks.size() >= 3);
  for (const std::string& block : blocks) {
    CAPTURE(block);
    Program shell({"sh", "-e", "-c", block}, folder.path());
    const int exit_code = shell.wait();
    CAPTURE(shell.output());
    CHECK(exit_code == 0);
  }
}

TEST_CASE(
    "No command in the documentation has a placeholder that a shell takes for a redirection") {
  const std::regex placeholder("<[a-z_]+>");
  int blocks = 0;
  for (const char* place :
       {"README.md", "env", "replay", "collectives", "learner", "actors", "experiments", "tests"}) {
    std::vector<std::filesystem::path> files{in_source(place)};
    if (std::filesystem::is_directory(files.front())) {
      const std::filesystem::recursive_directory_iterator inside(files.front());
      files.clear();
      for (const auto& entry : inside) {
        files.push_back(entry.path());
      }
    }
    for (const auto& file : files) {
      if (file.extension() != ".md") {
        continue;
      }
      CAPTURE(file);
      for (const std::string& block : shell_blocks(read_text(file))) {
        ++blocks;
        CAPTURE(block);
        CHECK_FALSE(std::regex_search(block, placeholder));
      }
    }
  }
  CHECK(blocks > 50);
}

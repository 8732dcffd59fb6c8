#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

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

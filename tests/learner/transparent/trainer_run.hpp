#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/experiments/commands/program.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

namespace troupe::learner::transparent {

using experiments::Outcome;
using experiments::Program;

/// The path of one of the programs without Troupe.
inline std::string style(const std::string& name) {
  return in_build("tests/learner/transparent/" + name);
}

/// The lines of `text` that begin with `prefix`.
inline std::vector<std::string> lines_of(const std::string& text, const std::string& prefix) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(prefix))
      found.push_back(line);
  return found;
}

/// The last word of each such line, as a number.
inline std::vector<double> numbers_of(const std::string& text, const std::string& prefix) {
  std::vector<double> numbers;
  for (const std::string& line : lines_of(text, prefix))
    numbers.push_back(std::strtod(line.c_str() + line.rfind(' '), nullptr));
  return numbers;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  REQUIRE_FALSE(a.empty());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

struct RunOfRanks {
  Outcome outcome;
  std::vector<std::string> ranks; // output of each
};

/// Runs `troupe transparent -n RANKS FLAGS -- WORDS` in `folder`.
inline RunOfRanks run_ranks(int ranks, const std::vector<std::string>& words,
                            const TemporaryFolder& folder,
                            const std::vector<std::string>& flags = {}) {
  std::vector<std::string> all{"transparent", "-n",           std::to_string(ranks), "--output",
                               "files",       "--log-folder", folder.path() / "logs"};
  all.insert(all.end(), flags.begin(), flags.end());
  all.emplace_back("--");
  all.insert(all.end(), words.begin(), words.end());
  RunOfRanks run{experiments::run_troupe(all, folder.path()), {}};
  for (int rank = 0; rank < ranks; ++rank)
    run.ranks.push_back(
        read_text(folder / "logs" / std::filesystem::path("rank" + std::to_string(rank) + ".log")));
  return run;
}

/// Runs the program alone, as its author does.
inline Outcome run_alone(const std::vector<std::string>& words, const TemporaryFolder& folder) {
  Program program(words, folder.path());
  const int exit_code = program.wait();
  return {exit_code, program.output(), program.last_line()};
}

} // namespace troupe::learner::transparent

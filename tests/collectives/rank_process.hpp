#pragma once

#include "tests/child_process.hpp"

namespace troupe::collectives {

struct RankProcess : ChildProcess {
  explicit RankProcess(std::vector<std::string> words)
      : ChildProcess("tests/collectives/rank_program", std::move(words)) {}
};

} // namespace troupe::collectives

#pragma once

#include "env/processes/child_process.hpp"
#include "tests/folders.hpp"

namespace troupe::collectives {

struct RankProcess : ChildProcess {
  explicit RankProcess(std::vector<std::string> words)
      : ChildProcess(in_build("tests/collectives/rank_program"), std::move(words)) {}
};

} // namespace troupe::collectives

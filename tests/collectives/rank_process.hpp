#pragma once

#include "env/child_process.hpp"

namespace troupe::collectives {

struct RankProcess : ChildProcess {
  explicit RankProcess(std::vector<std::string> words)
      : ChildProcess(TROUPE_BINARY_DIR "/tests/collectives/rank_program", std::move(words)) {}
};

} // namespace troupe::collectives

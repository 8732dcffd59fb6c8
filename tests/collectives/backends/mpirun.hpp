#pragma once
// Runs a program under mpirun, with a deadline.
#include <cstdlib>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "env/processes/start_program.hpp"

namespace troupe::collectives {

/// Returns the path of mpirun, or "" if there is none.
inline std::string find_mpirun() {
  std::string path = std::getenv("PATH") ? std::getenv("PATH") : "";
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find(':', begin), path.size());
    const auto file = path.substr(begin, end - begin) + "/mpirun";
    if (access(file.c_str(), X_OK) == 0)
      return file;
    begin = end + 1;
  }
  return {};
}

/// Returns the exit status of `mpirun -n size arguments…`, run with the additional `variables`
/// ("NAME=value").
inline int run_under_mpi(int size, std::vector<std::string> arguments,
                         std::vector<std::string> variables = {}) {
  std::vector<std::string> words{find_mpirun(), "-n", std::to_string(size)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  // Allow more ranks than cores and root in a container, and stop what hangs.
  for (const char* variable :
       {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_hwloc_base_binding_policy=none",
        "OMPI_MCA_mpi_yield_when_idle=1", "MPIEXEC_TIMEOUT=90"})
    variables.push_back(variable);
  const pid_t child = start_program(words, variables);
  if (child < 0)
    return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace troupe::collectives

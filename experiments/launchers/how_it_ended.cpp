#include "experiments/launchers/how_it_ended.hpp"

#include <cstring>

namespace troupe::experiments {

std::string how_it_ended(const siginfo_t& about) {
  if (about.si_code == CLD_EXITED)
    return "ended with exit code " + std::to_string(about.si_status);
  return "was killed by signal " + std::to_string(about.si_status) + " ("
         + ::strsignal(about.si_status) + ")";
}

} // namespace troupe::experiments

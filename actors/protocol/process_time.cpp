#include "actors/protocol/process_time.hpp"

#include <cstdint>

#include <sys/resource.h>

#include "actors/protocol/system.hpp"

namespace troupe::actors {

wire::ProcessTime process_time() {
  static const std::uint64_t number = random_life();
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used); // cannot fail for the process itself
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  wire::ProcessTime made;
  made.set_process(number);
  made.set_processor_seconds(seconds(used.ru_utime) + seconds(used.ru_stime));
  return made;
}

} // namespace troupe::actors

// libFuzzer target of the parser of strategies.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "learner/replicas/strategy_options.hpp"
#include "tests/fuzz_seeds.hpp"

std::vector<std::string> troupe::fuzz_seeds() {
  return {"one_device",
          "mirrored replicas=2",
          "multi_worker backend=tcp timeout_seconds=30",
          "parameter_server servers=tcp://a:1,tcp://b:2 max_staleness=3",
          "sync_groups sync_groups=2",
          "backup_workers backup_workers=1",
          "local_sgd local_steps=4 average_moments=true"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::learner;
  try {
    const auto options = parse_strategy(std::string(reinterpret_cast<const char*>(data), size));
    for (const int replicas : {1, 2, 6})
      if (const auto in_sync = replicas_in_sync(options, replicas);
          in_sync < 1 || in_sync > replicas)
        __builtin_trap();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}

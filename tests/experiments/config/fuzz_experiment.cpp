// libFuzzer target of experiment files.
#include <cstddef>
#include <cstdint>
#include <string>

#include <google/protobuf/util/message_differencer.h>

#include "experiments/config/config.hpp"
#include "tests/fuzz_seeds.hpp"

std::vector<std::string> troupe::fuzz_seeds() {
  const std::string task = "environment { task: \"cartpole_balance\" }\n";
  return {task,
          "# pixels\nenvironment {\n  task: 'walker_walk'\n  pixels { height: 64 width: 64 "
          "camera: \"0\" }\n  frame_stack: 3\n  action_repeat: 2\n}\n"
          "drqv2 { batch_size: 128 learning_rate: 1e-4 }\nstop { environment_steps: 1000 }",
          task + "replay { shards: 2 capacity_items: 1000 samples_per_insert: 64 n_step: 3 }\n"
              + "d4pg { policy_layers: [256, 256] value_minimum: 0 value_maximum: 33.3 }\n"
              + "actors { environment: 2 }\nevaluation { period: 16000 }\nseed: 3",
          "environment { task: \"remote\" options: \"endpoint=ipc:///run/cheetah\" }\nsac {}",
          "base: \"missing\"\n" + task};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::experiments;
  try {
    const Experiment read = parse_experiment(std::string(reinterpret_cast<const char*>(data), size),
                                             "nowhere/fuzz.textproto");
    const Experiment again = parse_experiment(resolved_text(read), "nowhere/again.textproto");
    if (!google::protobuf::util::MessageDifferencer::Equals(read, again))
      __builtin_trap();
  } catch (const ConfigError& error) {
    if (error.complaints().empty()
        || !std::string_view(error.what()).starts_with("nowhere/fuzz.textproto"))
      __builtin_trap(); // it is of the second parse, or does not name its file
  }
  return 0;
}

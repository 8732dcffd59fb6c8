// libFuzzer target of recording headers.
#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/recordings/recording.hpp"
#include "replay/storage/storage_error.hpp"
#include "tests/fuzz_seeds.hpp"
#include "tests/temporary_folder.hpp"

std::vector<std::string> troupe::fuzz_seeds() {
  using namespace replay;
  const TemporaryFolder folder(kMemoryFolder);
  const RecordingSpec spec{.frame = {"state", env::ElementType::float32, {3}},
                           .action_size = 2,
                           .action_choices = {0, 4},
                           .about = {{"task", "Taxi"}, {"seed", "3"}}};
  const std::vector<std::byte> frame(spec.frame.bytes());
  const std::vector<float> action{0.5F, 2};
  Episode episode(spec);
  episode.begin(frame);
  episode.append(action, 1, 0, frame);
  RecordingWriter writer(folder / "seed", spec);
  writer.add(episode);
  writer.add(episode);
  writer.commit();
  const CheckpointReader reader(folder / "seed");
  const auto header = reader.header();
  return {{reinterpret_cast<const char*>(header.data()), header.size()}};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    troupe::replay::parse_recording_header({reinterpret_cast<const std::byte*>(data), size},
                                           "fuzz");
  } catch (const troupe::replay::StorageError&) {
  }
  return 0;
}

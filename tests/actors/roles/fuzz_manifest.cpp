// libFuzzer target of the manifest.json of a run's checkpoints.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>

#include "actors/roles/checkpoint.hpp"
#include "tests/fuzz_seeds.hpp"
#include "tests/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;

/// A folder with a file "learner" of four bytes.
void add_learner(const fs::path& folder) {
  fs::create_directories(folder);
  std::ofstream(folder / "learner") << "data";
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  const TemporaryFolder folder(kMemoryFolder);
  add_learner(folder / "partial");
  actors::wire::Manifest manifest;
  manifest.mutable_state()->set_updates(100);
  manifest.mutable_state()->set_evaluation_return(12.5);
  manifest.mutable_state()->add_task_options("length=2");
  actors::commit_checkpoint(folder / "partial", folder / "100", manifest);
  const std::string sealed = read_text(folder / "100" / "manifest.json");
  // Only a manifest of version 2, without a checksum of its own, survives the fuzzer's changes.
  std::string open = sealed;
  open.replace(open.find("\"version\": 3"), 12, "\"version\": 2");
  open.erase(open.rfind(','));
  return {sealed, open + "\n}\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const troupe::TemporaryFolder folder(troupe::kMemoryFolder);
  add_learner(folder.path());
  std::ofstream(folder / "manifest.json", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    const auto manifest = troupe::actors::read_manifest(folder.path());
    if (manifest.state().updates() < 0)
      __builtin_trap();
    troupe::actors::verify_checkpoint(folder.path());
  } catch (const std::runtime_error&) {
  }
  return 0;
}

// Linked into every libFuzzer target. In the preset fuzz, `fuzz_NAME --write-seeds FOLDER` writes
// the target's fuzz_seeds() as files. In other builds the target becomes a test: it runs on these
// seeds, on the files of a folder, so that an input that once crashed it remains a test, and on
// mutations of both, the same in every run.
// Usage: <program> FOLDER
#include "tests/fuzz_seeds.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "env/random.hpp"
#include "tests/mutated.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::string> made_seeds() {
  return troupe::fuzz_seeds == nullptr ? std::vector<std::string>() : troupe::fuzz_seeds();
}

} // namespace

#ifdef TROUPE_LIBFUZZER

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc != 3 || std::string_view((*argv)[1]) != "--write-seeds")
    return 0;
  int number = 0;
  for (const std::string& seed : made_seeds())
    std::ofstream(std::filesystem::path((*argv)[2]) / ("made-" + std::to_string(number++)),
                  std::ios::binary)
        << seed;
  std::exit(0);
}

#else

namespace {

/// Returns whether the target accepted the input.
bool run(const std::string& name, const std::string& input) {
  std::printf("%s\n", name.c_str()); // after a crash, the last line printed names the input
  std::fflush(stdout);
  return LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size())
         == 0;
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::pair<std::string, std::string>> seeds; // names and bytes
  for (std::string& seed : made_seeds()) {
    const std::string name = "made-" + std::to_string(seeds.size());
    if (!run(name, seed)) {
      std::printf("the target refuses its own seed\n");
      return 1;
    }
    seeds.emplace_back(name, std::move(seed));
  }
  if (argc == 2 && std::filesystem::is_directory(argv[1]))
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
      std::ifstream in(entry.path(), std::ios::binary);
      seeds.emplace_back(entry.path().string(),
                         std::string(std::istreambuf_iterator<char>(in), {}));
    }
  if (seeds.empty())
    return 1;
  std::sort(seeds.begin(), seeds.end());
  LLVMFuzzerTestOneInput(nullptr, 0);
  for (const auto& [name, bytes] : seeds)
    run(name, bytes);
  constexpr std::size_t kMutations = 2000;
  troupe::env::Random random(1);
  for (std::size_t i = 0; i < kMutations; ++i) {
    const auto& [name, bytes] = seeds[i % seeds.size()];
    run("mutation " + std::to_string(i) + ", of " + name, troupe::mutated(bytes, random));
  }
  std::printf("%zu seeds, %zu mutations\n", seeds.size(), kMutations);
  return 0;
}

#endif

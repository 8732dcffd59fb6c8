// Linked into every libFuzzer target. In the preset fuzz, `fuzz_NAME --write-seeds FOLDER` writes
// the target's fuzz_seeds() as files. In other builds the target becomes a test: it runs on these
// seeds and on the files of a folder, so that an input that once crashed it remains a test.
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

void run(const std::string& name, const std::string& input) {
  std::printf("%s\n", name.c_str()); // after a crash, the last line printed names the input
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  if (argc == 2 && std::filesystem::is_directory(argv[1]))
    for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  LLVMFuzzerTestOneInput(nullptr, 0);
  const auto made = made_seeds();
  for (std::size_t i = 0; i < made.size(); ++i)
    run("made-" + std::to_string(i), made[i]);
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    run(file.string(), {std::istreambuf_iterator<char>(in), {}});
  }
  std::printf("%zu seeds\n", made.size() + files.size());
  return made.empty() && files.empty() ? 1 : 0;
}

#endif

// libFuzzer target of safetensors files, the parts of checkpoints.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include <ATen/ops/arange.h>

#include "learner/device/safetensors.hpp"
#include "tests/fuzz_seeds.hpp"
#include "tests/temporary_folder.hpp"

std::vector<std::string> troupe::fuzz_seeds() {
  const TemporaryFolder folder(kMemoryFolder);
  const auto file = folder / "seed";
  learner::write_safetensors(file,
                             {{"weight", at::arange(6, at::kFloat).reshape({2, 3})},
                              {"steps", at::arange(1, at::kLong)},
                              {"half", at::arange(2, at::kBFloat16)},
                              {"empty", at::arange(0, at::kByte)}},
                             {{"format", "pt"}});
  return {read_text(file)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = memfd_create("fuzz", 0);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size))
    __builtin_trap();
  try {
    const auto read = troupe::learner::read_safetensors("/proc/self/fd/" + std::to_string(file));
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : read.tensors)
      bytes += tensor.nbytes();
    if (bytes > size)
      __builtin_trap();
  } catch (const std::runtime_error&) {
  }
  close(file);
  return 0;
}

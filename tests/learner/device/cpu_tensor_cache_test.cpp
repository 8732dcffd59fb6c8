#include "tests/doctest_torch.hpp"

#include <thread>

#include "learner/device/cpu_tensor_cache.hpp"

namespace troupe::learner {
namespace {

constexpr std::size_t kMegabyte = 1 << 20;

at::Tensor of_megabytes(double megabytes) {
  return at::empty({static_cast<std::int64_t>(megabytes * static_cast<double>(kMegabyte))},
                   at::kByte)
      .fill_(7);
}

} // namespace

TEST_CASE("The memory of a large tensor is kept for the next one of its size on any thread") {
  keep_tensor_memory();
  keep_tensor_memory();
  const void* before = nullptr;
  {
    const auto tensor = of_megabytes(8);
    before = tensor.const_data_ptr();
    CHECK(cpu_cache_statistics().in_use == 8 * kMegabyte);
  }
  CHECK(cpu_cache_statistics().in_use == 0);
  CHECK(cpu_cache_statistics().kept == 8 * kMegabyte);
  at::Tensor again;
  std::jthread([&] { again = of_megabytes(7.9); }).join();
  CHECK(again.const_data_ptr() == before);
  CHECK(cpu_cache_statistics().kept == 0);
  CHECK(again.eq(7).all().item<bool>());
  const auto small = of_megabytes(0.5);
  CHECK(cpu_cache_statistics().in_use == 8 * kMegabyte); // small ones come from malloc
}

TEST_CASE("Memory in use plus cached memory never exceeds the peak memory in use") {
  keep_tensor_memory();
  for (int round = 0; round < 3; ++round) {
    std::vector<at::Tensor> tensors;
    for (const double megabytes : {3.0, 5.0, 2.0, 3.0})
      tensors.push_back(of_megabytes(megabytes + round));
    tensors.erase(tensors.begin() + 1);
    const auto later = of_megabytes(9);
    for (const auto& tensor : tensors)
      CHECK(tensor.eq(7).all().item<bool>());
    const auto memory = cpu_cache_statistics();
    CHECK(memory.in_use + memory.kept <= memory.most);
  }
  const auto memory = cpu_cache_statistics();
  CHECK(memory.in_use == 0);
  CHECK(memory.kept > 0);
  CHECK(memory.kept <= memory.most);
}

} // namespace troupe::learner

#include "experiments/commands/tools/machine.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments::commands;

namespace {

Machine fine_machine() {
  return {.cores = 8,
          .host_cores = 16,
          .kernels = "avx512",
          .gigahertz = 3,
          .governor = "performance",
          .memory_bytes = std::int64_t{32} << 30,
          .huge_pages = "madvise",
          .shared_bytes = std::int64_t{1} << 30,
          .descriptors = 20'000,
          .gpus = {"NVIDIA H100"}};
}

} // namespace

TEST_CASE("doctor suggests no change on a good machine and exactly one for each fault") {
  for (const Finding& finding : judge_machine(fine_machine())) {
    CAPTURE(finding.name);
    CHECK(finding.level == Level::good);
    CHECK(finding.change.empty());
    CHECK_FALSE(finding.text.empty());
  }
  struct Fault {
    std::function<void(Machine&)> is;
    std::string name, change; // a part of what to do
  };
  for (const Fault& fault : std::vector<Fault>{
           {[](Machine& m) { m.kernels = "baseline"; }, "CPU", "AVX2"},
           {[](Machine& m) { m.omp_threads = "64"; }, "threads", "at most 8"},
           {[](Machine& m) { m.load = 12; }, "load", "other programs"},
           {[](Machine& m) { m.governor = "powersave"; }, "clock", "performance"},
           {[](Machine& m) { m.memory_bytes = 1 << 30; }, "memory", "4 GiB"},
           {[](Machine& m) { m.huge_pages = "never"; }, "huge pages", "madvise"},
           {[](Machine& m) { m.shared_bytes = 64 << 20; }, "shared memory", "--shm-size"},
           {[](Machine& m) { m.shared_bytes = -1; }, "shared memory", "--shm-size"},
           {[](Machine& m) { m.descriptors = 1024; }, "descriptors", "ulimit -n"},
           {[](Machine& m) { m.no_gpu_training = "built without CUDA"; }, "GPU",
            "built without CUDA"},
       }) {
    CAPTURE(fault.name);
    Machine machine = fine_machine();
    fault.is(machine);
    std::size_t faults = 0;
    for (const Finding& finding : judge_machine(machine)) {
      if (finding.level != Level::good) {
        ++faults;
        CHECK(finding.name == fault.name);
        CHECK(has(finding.change, fault.change));
      }
    }
    CHECK(faults == 1);
  }
}

TEST_CASE("A machine without GPUs does not need CUDA, and this machine can be measured") {
  Machine machine = fine_machine();
  machine.gpus.clear();
  machine.no_gpu_training = "built without CUDA";
  for (const Finding& finding : judge_machine(machine)) {
    CHECK(finding.level == Level::good);
  }
  const Machine here = measure_machine();
  CHECK(here.cores >= 1);
  CHECK(here.host_cores >= here.cores);
  CHECK(here.gigahertz > 0.3);
  CHECK(here.gigahertz < 8);
  CHECK(here.copied_gib > 0.1);
  CHECK(here.memory_bytes > 1 << 28);
  CHECK(here.descriptors > 0);
}

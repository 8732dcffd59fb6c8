#include "experiments/commands/tools/machine.hpp"

#include <cpuid.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "actors/placement/node_resources.hpp"
#include "collectives/communicator.hpp"
#include "env/render/cast_renderer.hpp"
#include "env/text/joined.hpp"
#include "learner/nn/kernels/kernel_table.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;
constexpr std::int64_t kFewDescriptors = 4096;

std::string number(double value, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, "%.1f %s", value, unit);
  return text;
}

/// Processor time of this thread, which other programs do not affect.
double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Each addition depends on the one before it and takes one cycle.
double measure_gigahertz() {
  constexpr int kRounds = 10'000'000;
  std::uint64_t x = 1;
  const double begin = thread_seconds();
  for (int i = 0; i < kRounds; ++i) {
    // Eight additions in a chain, one cycle each, hide the cost of the loop.
    asm volatile("add %0, %0\n\tadd %0, %0\n\tadd %0, %0\n\tadd %0, %0\n\t"
                 "add %0, %0\n\tadd %0, %0\n\tadd %0, %0\n\tadd %0, %0"
                 : "+r"(x));
  }
  return 8e-9 * kRounds / (thread_seconds() - begin);
}

double measure_copies() {
  constexpr std::size_t kBytes = 64 * kMiB;
  std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes, 2);
  const double begin = thread_seconds();
  for (int i = 0; i < 4; ++i) {
    from[0] = static_cast<char>(i);
    std::memcpy(to.data(), from.data(), kBytes);
    asm volatile("" : : "r"(to.data()) : "memory"); // keeps the compiler from removing copies
  }
  return 4.0 * kBytes / kGiB / (thread_seconds() - begin);
}

/// AMX is not among the names that the compiler's builtin knows.
bool has_amx_bf16() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (1U << 22)) != 0;
}

std::string processor_features() {
  __builtin_cpu_init();
  std::string features;
  for (const auto& [name, there] : {std::pair{"AVX2", __builtin_cpu_supports("avx2") != 0},
                                    {"AVX-512", __builtin_cpu_supports("avx512f") != 0},
                                    {"AVX512-BF16", __builtin_cpu_supports("avx512bf16") != 0},
                                    {"AMX-BF16", has_amx_bf16()}}) {
    features += (features.empty() ? "" : ", ") + std::string(name) + (there ? " yes" : " no");
  }
  return features;
}

std::string first_line(const std::filesystem::path& file) {
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  return line;
}

/// Extracts "madvise" from "always [madvise] never".
std::string chosen_huge_pages() {
  const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t begin = line.find('[');
  return begin == std::string::npos ? "" : line.substr(begin + 1, line.find(']') - begin - 1);
}

std::int64_t free_shared_bytes() {
  struct statvfs space {};
  if (::statvfs("/dev/shm", &space) != 0) {
    return -1;
  }
  return static_cast<std::int64_t>(space.f_bavail) * static_cast<std::int64_t>(space.f_frsize);
}

/// The model names from the driver if available, otherwise the numbers.
std::vector<std::string> visible_gpus(const std::vector<int>& numbers) {
  std::vector<std::string> models;
  std::error_code error;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    std::string line = first_line(gpu.path() / "information"); // "Model:   NVIDIA H100"
    const std::size_t name = line.find_first_not_of(" \t", line.find(':') + 1);
    models.push_back(name == std::string::npos ? line : line.substr(name));
  }
  if (models.size() == numbers.size()) {
    return models;
  }
  models.clear();
  for (const int number : numbers) {
    models.push_back("GPU " + std::to_string(number));
  }
  return models;
}

void judge_processor(const Machine& m, std::vector<Finding>& out) {
  const bool slow = m.kernels == "baseline";
  out.push_back({"CPU", slow ? Level::warning : Level::good,
                 std::to_string(m.cores) + " of the host's " + std::to_string(m.host_cores)
                     + " cores; " + m.features,
                 slow ? "use a processor with AVX2, or let the virtual machine show it" : ""});
  out.push_back({"kernels", Level::good,
                 m.kernels + " for networks, "
                     + (m.bfloat16 ? "bfloat16 where it is faster" : "float32") + "; " + m.caster});
  const int threads = std::atoi(m.omp_threads.c_str());
  const bool many = threads > m.cores;
  out.push_back(
      {"threads", many ? Level::warning : Level::good,
       m.omp_threads.empty() ? "OMP_NUM_THREADS is not set: one thread per core"
                             : "OMP_NUM_THREADS is " + m.omp_threads,
       many ? "unset OMP_NUM_THREADS, or set it to at most " + std::to_string(m.cores) : ""});
  const bool busy = m.load > 0.5 * m.host_cores;
  out.push_back({"load", busy ? Level::warning : Level::good,
                 number(m.load, "running programs, mean over a minute"),
                 busy ? "end other programs before you measure" : ""});
  const bool saves = m.governor == "powersave";
  out.push_back({"clock", saves ? Level::warning : Level::good,
                 number(m.gigahertz, "GHz measured on one core")
                     + (m.governor.empty() ? "" : ", governor " + m.governor),
                 saves ? "cpupower frequency-set -g performance" : ""});
}

void judge_memory(const Machine& m, std::vector<Finding>& out) {
  const bool small = m.memory_bytes < 4 * kGiB;
  out.push_back({"memory", small ? Level::warning : Level::good,
                 actors::bytes_text(m.memory_bytes)
                     + "; unused on the host: " + actors::bytes_text(m.unused_bytes) + "; copies "
                     + number(m.copied_gib, "GiB/s by one thread"),
                 small ? "training from pixels needs 4 GiB; lower replay.capacity_bytes" : ""});
  const bool none = m.huge_pages == "never";
  out.push_back({"huge pages", none ? Level::warning : Level::good,
                 m.huge_pages.empty() ? "not visible here" : m.huge_pages,
                 none ? "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled" : ""});
  const bool little = m.shared_bytes < 256 * kMiB;
  out.push_back({"shared memory", little ? Level::warning : Level::good,
                 m.shared_bytes < 0 ? "there is no /dev/shm"
                                    : actors::bytes_text(m.shared_bytes) + " free in /dev/shm",
                 little
                     ? "NCCL and MPI keep buffers there: docker run --shm-size=1g, or an emptyDir "
                       "of medium Memory"
                     : ""});
  const bool few = m.descriptors < kFewDescriptors;
  out.push_back({"descriptors", few ? Level::warning : Level::good, std::to_string(m.descriptors),
                 few ? "ulimit -n 65536: the head of a cluster needs some for each process" : ""});
}

void judge_gpus(const Machine& m, std::vector<Finding>& out) {
  const bool idle = !m.gpus.empty() && !m.no_gpu_training.empty();
  out.push_back({"GPU", idle ? Level::warning : Level::good,
                 m.gpus.empty() ? "none is visible" : env::joined(m.gpus),
                 idle ? "build Troupe where CUDA and NCCL are found: " + m.no_gpu_training : ""});
}

} // namespace

Machine measure_machine() {
  const actors::NodeResources here = actors::resources_of_this_host();
  Machine m;
  m.cores = static_cast<int>(actors::cores_of(here).size());
  m.host_cores = static_cast<int>(::get_nprocs());
  m.features = processor_features();
  m.kernels = learner::kernel_table().name;
  m.caster = env::CastRenderer::cast_description();
  m.bfloat16 = __builtin_cpu_supports("avx512bf16") != 0;
  double loads[1] = {0};
  m.load = ::getloadavg(loads, 1) == 1 ? loads[0] : 0;
  const char* threads = std::getenv("OMP_NUM_THREADS");
  m.omp_threads = threads == nullptr ? "" : threads;
  m.gigahertz = measure_gigahertz();
  m.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  m.copied_gib = measure_copies();
  struct sysinfo memory {};
  ::sysinfo(&memory);
  m.memory_bytes = here.memory_bytes > 0 ? here.memory_bytes
                                         : static_cast<std::int64_t>(memory.totalram)
                                               * static_cast<std::int64_t>(memory.mem_unit);
  m.unused_bytes = static_cast<std::int64_t>(memory.freeram + memory.bufferram)
                   * static_cast<std::int64_t>(memory.mem_unit);
  m.huge_pages = chosen_huge_pages();
  m.shared_bytes = free_shared_bytes();
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  m.descriptors = static_cast<std::int64_t>(std::min<rlim_t>(files.rlim_cur, 1 << 30));
  m.gpus = visible_gpus(actors::gpus_of(here));
  m.no_gpu_training = collectives::nccl_unavailable_reason();
  return m;
}

std::vector<Finding> judge_machine(const Machine& machine) {
  std::vector<Finding> out;
  judge_processor(machine, out);
  judge_memory(machine, out);
  judge_gpus(machine, out);
  return out;
}

} // namespace troupe::experiments::commands

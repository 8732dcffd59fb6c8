#include "env/amx.hpp"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/processes/forked.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace troupe::env {
namespace {

#if defined(__x86_64__)

constexpr int kRequestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
constexpr int kTileData = 18;              // the processor state of the tiles
constexpr int kRows = 16, kRowBytes = 64;  // of a tile
constexpr float kTerms = 32;               // of each sum: 64 bytes of bfloat16

struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14]{};
  std::uint16_t row_bytes[16]{};
  std::uint8_t rows[16]{};
};

/// Asks the system to keep the tiles of this process's threads. Without it, they may not be used.
bool asks_permission() {
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

/// Multiplies two tiles of ones.
bool multiplies_tiles() {
  if (!asks_permission())
    return false;
  TileConfiguration configuration;
  for (int tile = 0; tile < 3; ++tile) {
    configuration.row_bytes[tile] = kRowBytes;
    configuration.rows[tile] = kRows;
  }
  alignas(64) static std::uint16_t ones[kRows * kRowBytes / 2];
  for (std::uint16_t& one : ones)
    one = 0x3f80; // in bfloat16
  alignas(64) static float sums[kRows * kRowBytes / 4];
  const std::int64_t stride = kRowBytes;
  asm volatile("ldtilecfg %0\n\t"
               "tilezero %%tmm0\n\t"
               "tileloadd (%1,%3,1), %%tmm1\n\t"
               "tileloadd (%1,%3,1), %%tmm2\n\t"
               "tdpbf16ps %%tmm2, %%tmm1, %%tmm0\n\t"
               "tilestored %%tmm0, (%2,%3,1)\n\t"
               "tilerelease"
               :
               : "m"(configuration), "r"(ones), "r"(sums), "r"(stride)
               : "memory");
  for (const float sum : sums)
    if (sum != kTerms)
      return false;
  return true;
}

#else

bool asks_permission() {
  return false;
}
bool multiplies_tiles() {
  return false;
}

#endif

} // namespace

bool announces_amx() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBfloat16 = 1U << 22, kTiles = 1U << 24;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0
         && (d & (kBfloat16 | kTiles)) == (kBfloat16 | kTiles);
#else
  return false;
#endif
}

bool succeeds_in_child(bool (*trial)()) {
  const int status = status_of_child([trial] {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    for (const int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE})
      std::signal(number, SIG_DFL);
    return trial() ? 0 : 1;
  });
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool executes_amx() {
  static const bool executes =
      announces_amx() && succeeds_in_child(multiplies_tiles) && asks_permission();
  return executes;
}

void avoid_broken_amx() {
  if (std::getenv("ONEDNN_MAX_CPU_ISA") == nullptr && announces_amx() && !executes_amx())
    ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", 1);
}

} // namespace troupe::env

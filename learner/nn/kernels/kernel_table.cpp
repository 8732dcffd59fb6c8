#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/norm_kernels.hpp"

#include <string_view>

namespace troupe::learner {

namespace kernels_baseline {
extern const KernelTable table;
extern const NormKernels norms;
} // namespace kernels_baseline
#ifdef TROUPE_X86_KERNELS
namespace kernels_avx2 {
extern const KernelTable table;
extern const NormKernels norms;
} // namespace kernels_avx2
namespace kernels_avx512 {
extern const KernelTable table;
extern const NormKernels norms;
} // namespace kernels_avx512
namespace kernels_avx512bf16 {
extern const KernelTable table;
extern const NormKernels norms;
} // namespace kernels_avx512bf16
#endif

const KernelTable* kernel_table(const char* name) {
  const std::string_view wanted(name);
  if (wanted == "baseline")
    return &kernels_baseline::table;
#ifdef TROUPE_X86_KERNELS
  if (wanted == "avx2" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return &kernels_avx2::table;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
                          && __builtin_cpu_supports("avx512vl")
                          && __builtin_cpu_supports("avx512bw");
  if (wanted == "avx512" && has_avx512)
    return &kernels_avx512::table;
  if (wanted == "avx512bf16" && has_avx512 && __builtin_cpu_supports("avx512bf16"))
    return &kernels_avx512bf16::table;
#endif
  return nullptr;
}

const NormKernels* norm_kernels(const char* name) {
  const KernelTable* same = kernel_table(name);
#ifdef TROUPE_X86_KERNELS
  if (same == &kernels_avx2::table)
    return &kernels_avx2::norms;
  if (same == &kernels_avx512::table)
    return &kernels_avx512::norms;
  if (same == &kernels_avx512bf16::table)
    return &kernels_avx512bf16::norms;
#endif
  return same ? &kernels_baseline::norms : nullptr;
}

const NormKernels& norm_kernels() {
  return *norm_kernels(kernel_table().name);
}

const KernelTable& kernel_table() {
  for (const char* name : {"avx512bf16", "avx512", "avx2"})
    if (const KernelTable* table = kernel_table(name))
      return *table;
  return kernels_baseline::table;
}

} // namespace troupe::learner

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

/// The interface between the preloaded library and its core, libtroupe_transparent_core.so. The
/// preloaded library does not depend on LibTorch, so it can be loaded into any program. The core is
/// loaded only into processes that use LibTorch. Both libraries are built together.
namespace troupe::learner::transparent {

/// Stands for at::Tensor in the calling convention. It is not trivial, so it is returned through
/// memory.
struct OpaqueTensor {
  OpaqueTensor(const OpaqueTensor&);
  ~OpaqueTensor();
  void* implementation;
};

using Indices = std::optional<std::vector<std::size_t>>;
/// LibTorch's original functions. `closure` is a std::function<at::Tensor()>.
using StepFunction = OpaqueTensor (*)(void* optimizer, void* closure);
using NextFunction = Indices (*)(void* sampler, std::size_t batch_size);
using ResetFunction = void (*)(void* sampler, std::optional<std::size_t> size);
using SeedFunction = void (*)(void* generator, std::uint64_t seed);

/// The functions of the core. None of them throws: a failure is printed and ends the process with
/// exit code 1 (2 if an environment variable is invalid). Any thread may call them; calls are
/// serialized.
struct Core {
  static constexpr int kVersion = 3;
  int version;
  bool (*begin)(); // meets the other ranks; false: there are none, so change nothing
  bool (*is_rank_0)();
  void (*end)(int exit_code); // takes leave of the other ranks; called once
  OpaqueTensor (*step)(void* optimizer, void* closure, const char* name, StepFunction);
  void (*group_added)(void* optimizer); // after LibTorch's add_param_group
  Indices (*next)(void* sampler, std::size_t batch_size, NextFunction);
  void (*reset)(void* sampler, std::optional<std::size_t> size, ResetFunction);
  void (*buffer)(const void* tensor); // a buffer that LibTorch registered with a module
  void (*stream)();                   // reports a stream's sampler, which cannot be shared
  void (*seed)(void* generator, std::uint64_t seed, SeedFunction);
};

/// Exported by the core as "troupe_transparent_core".
using GetCore = const Core* (*)();

} // namespace troupe::learner::transparent

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

/// How the preloaded library talks to its core, libtroupe_transparent_core.so. The preloaded
/// library knows no LibTorch, so that it may be loaded into any program; the core is loaded only
/// where LibTorch is. Both are built together.
namespace troupe::learner::transparent {

/// at::Tensor as the calling convention sees it: not trivial, so returned through memory.
struct OpaqueTensor {
  OpaqueTensor(const OpaqueTensor&);
  ~OpaqueTensor();
  void* implementation;
};

using Indices = std::optional<std::vector<std::size_t>>;
/// What LibTorch itself does. `closure` is a std::function<at::Tensor()>.
using StepFunction = OpaqueTensor (*)(void* optimizer, void* closure);
using NextFunction = Indices (*)(void* sampler, std::size_t batch_size);
using ResetFunction = void (*)(void* sampler, std::optional<std::size_t> size);
using SeedFunction = void (*)(void* generator, std::uint64_t seed);

/// The core's side. Nothing throws: a failure is printed and ends the process with exit code 1 (2:
/// a mistake in the environment variables). Any thread, one at a time.
struct Core {
  static constexpr int kVersion = 2;
  int version;
  bool (*begin)(); // meets the other ranks; false: this rank is alone, and nothing is to be changed
  bool (*is_rank_0)();
  void (*end)(int exit_code); // says good-bye to them; once
  OpaqueTensor (*step)(void* optimizer, void* closure, const char* name, StepFunction);
  void (*group_added)(void* optimizer, const void* group); // after LibTorch's add_param_group
  Indices (*next)(void* sampler, std::size_t batch_size, NextFunction);
  void (*reset)(void* sampler, std::optional<std::size_t> size, ResetFunction);
  void (*buffer)(const void* tensor); // that LibTorch registered with a module
  void (*stream)();                   // a stream's sampler is read: it cannot be shared
  void (*seed)(void* generator, std::uint64_t seed, SeedFunction);
};

/// Exported by the core as "troupe_transparent_core".
using GetCore = const Core* (*)();

} // namespace troupe::learner::transparent

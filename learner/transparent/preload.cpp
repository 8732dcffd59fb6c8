// The library that `troupe transparent` preloads. It intercepts the functions of LibTorch and of
// the C library that preload.map names. It passes the calls to the core or, if there is none, to
// the original. A process without LibTorch, or without a rank from a launcher, runs unchanged.
#include "learner/transparent/preload.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "learner/transparent/core.hpp"
#include "learner/transparent/settings.hpp"

#define TROUPE_EXPORT extern "C" __attribute__((visibility("default")))

namespace troupe::learner::transparent {
namespace {

constexpr int kFailed = 1;
constexpr const char* kCore = "libtroupe_transparent_core.so";

std::atomic<const Core*> core = nullptr; // set once, before main

/// Returns what LibTorch exports as `name`. It is looked up once per call site.
template <class Function>
Function original(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (!found) {
    std::fprintf(stderr,
                 "troupe transparent: this program's LibTorch has no %s; it must be LibTorch "
                 "2.11, linked dynamically\n",
                 name);
    std::_Exit(kFailed);
  }
  return reinterpret_cast<Function>(found);
}

std::filesystem::path own_path() {
  Dl_info info{};
  ::dladdr(reinterpret_cast<void*>(&own_path), &info);
  return info.dli_fname ? info.dli_fname : "";
}

/// Programs that this one starts are not ranks, so the library is not passed on to them.
void keep_from_children() {
  const std::string preloaded = environment_variable("LD_PRELOAD");
  std::string rest;
  for (std::size_t begin = 0; begin < preloaded.size();) {
    const std::size_t end = std::min(preloaded.find_first_of(": ", begin), preloaded.size());
    const std::string name = preloaded.substr(begin, end - begin);
    if (!name.empty() && std::filesystem::path(name).filename() != own_path().filename())
      rest += (rest.empty() ? "" : ":") + name;
    begin = end + 1;
  }
  if (rest.empty())
    ::unsetenv("LD_PRELOAD");
  else
    ::setenv("LD_PRELOAD", rest.c_str(), 1);
}

const Core* load_core() {
  const std::filesystem::path path = own_path().parent_path() / kCore;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* reason = library ? nullptr : ::dlerror();
  const auto get =
      library ? reinterpret_cast<GetCore>(::dlsym(library, "troupe_transparent_core")) : nullptr;
  if (!get || get()->version != Core::kVersion) {
    std::fprintf(stderr,
                 "troupe transparent: %s cannot be used: %s; both libraries must come from one "
                 "build, and the program must use LibTorch 2.11\n",
                 path.c_str(), reason ? reason : "another version");
    std::_Exit(kFailed);
  }
  return get();
}

void begin() {
  void* const torch = ::dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (!torch)
    return;
  ::dlclose(torch);
  const Core* const loaded = load_core();
  if (!loaded->begin())
    return;                                                      // there are no other ranks
  const Settings settings = read_settings(environment_variable); // valid: begin() has checked them
  if (settings.line_buffered)
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  if (settings.rank0_writes)
    divert_writes(!loaded->is_rank_0());
  keep_from_children();
  core = loaded;
}

void end(int exit_code) {
  if (const Core* const mine = core.exchange(nullptr))
    mine->end(exit_code);
}

using Main = int (*)(int, char**, char**);
Main program_main = nullptr; // set before any thread starts

int main_between(int argc, char** argv, char** environment) {
  begin();
  const int exit_code = program_main(argc, argv, environment);
  end(exit_code);
  return exit_code;
}

OpaqueTensor step(void* optimizer, void* closure, const char* name, StepFunction theirs) {
  const Core* const mine = core;
  return mine ? mine->step(optimizer, closure, name, theirs) : theirs(optimizer, closure);
}

} // namespace

/// Defines the member functions as free functions with the object as the first argument, which has
/// the same calling convention.
#define TROUPE_STEP(kind, symbol)                                                                  \
  OpaqueTensor troupe_step_##kind(void* optimizer, void* closure) __asm__(symbol);                 \
  __attribute__((visibility("default")))                                                           \
  OpaqueTensor troupe_step_##kind(void* optimizer, void* closure) {                                \
    static const auto theirs = original<StepFunction>(symbol);                                     \
    return step(optimizer, closure, #kind, theirs);                                                \
  }

TROUPE_STEP(SGD, "_ZN5torch5optim3SGD4stepESt8functionIFN2at6TensorEvEE")
TROUPE_STEP(Adam, "_ZN5torch5optim4Adam4stepESt8functionIFN2at6TensorEvEE")
TROUPE_STEP(AdamW, "_ZN5torch5optim5AdamW4stepESt8functionIFN2at6TensorEvEE")
TROUPE_STEP(RMSprop, "_ZN5torch5optim7RMSprop4stepESt8functionIFN2at6TensorEvEE")
TROUPE_STEP(Adagrad, "_ZN5torch5optim7Adagrad4stepESt8functionIFN2at6TensorEvEE")
TROUPE_STEP(LBFGS, "_ZN5torch5optim5LBFGS4stepESt8functionIFN2at6TensorEvEE")
#undef TROUPE_STEP

#define TROUPE_ADD_GROUP "_ZN5torch5optim9Optimizer15add_param_groupERKNS0_19OptimizerParamGroupE"
TROUPE_EXPORT void troupe_add_param_group(void* optimizer,
                                          const void* group) __asm__(TROUPE_ADD_GROUP);
void troupe_add_param_group(void* optimizer, const void* group) {
  static const auto theirs = original<void (*)(void*, const void*)>(TROUPE_ADD_GROUP);
  theirs(optimizer, group);
  if (const Core* const mine = core)
    mine->group_added(optimizer);
}

/// The name and the tensor are not trivial, so they are passed by address.
#define TROUPE_BUFFER                                                                              \
  "_ZN5torch2nn6Module15register_bufferENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEN2at6" \
  "TensorE"
TROUPE_EXPORT void* troupe_register_buffer(void* module, void* name,
                                           void* tensor) __asm__(TROUPE_BUFFER);
void* troupe_register_buffer(void* module, void* name, void* tensor) {
  static const auto theirs = original<void* (*)(void*, void*, void*)>(TROUPE_BUFFER);
  void* const registered = theirs(module, name, tensor);
  if (const Core* const mine = core)
    mine->buffer(registered);
  return registered;
}

#define TROUPE_NEXT(kind, symbol)                                                                  \
  Indices troupe_next_##kind(void* sampler, std::size_t batch_size) __asm__(symbol);               \
  __attribute__((visibility("default")))                                                           \
  Indices troupe_next_##kind(void* sampler, std::size_t batch_size) {                              \
    static const auto theirs = original<NextFunction>(symbol);                                     \
    const Core* const mine = core;                                                                 \
    return mine ? mine->next(sampler, batch_size, theirs) : theirs(sampler, batch_size);           \
  }

TROUPE_NEXT(random, "_ZN5torch4data8samplers13RandomSampler4nextEm")
TROUPE_NEXT(sequential, "_ZN5torch4data8samplers17SequentialSampler4nextEm")
#undef TROUPE_NEXT

/// Stands for std::optional<BatchSize>, which is not trivial, so it is returned through memory.
struct OpaqueBatchSize {
  OpaqueBatchSize(const OpaqueBatchSize&);
  ~OpaqueBatchSize();
};

#define TROUPE_STREAM "_ZN5torch4data8samplers13StreamSampler4nextEm"
OpaqueBatchSize troupe_next_stream(void* sampler, std::size_t batch_size) __asm__(TROUPE_STREAM);
__attribute__((visibility("default"))) OpaqueBatchSize troupe_next_stream(void* sampler,
                                                                          std::size_t batch_size) {
  static const auto theirs = original<OpaqueBatchSize (*)(void*, std::size_t)>(TROUPE_STREAM);
  if (const Core* const mine = core)
    mine->stream();
  return theirs(sampler, batch_size);
}

#define TROUPE_RESET "_ZN5torch4data8samplers13RandomSampler5resetESt8optionalImE"
void troupe_reset(void* sampler, std::optional<std::size_t> size) __asm__(TROUPE_RESET);
__attribute__((visibility("default"))) void troupe_reset(void* sampler,
                                                         std::optional<std::size_t> size) {
  static const auto theirs = original<ResetFunction>(TROUPE_RESET);
  if (const Core* const mine = core)
    mine->reset(sampler, size, theirs);
  else
    theirs(sampler, size);
}

#define TROUPE_SEED(kind, symbol)                                                                  \
  void troupe_seed_##kind(void* generator, std::uint64_t seed) __asm__(symbol);                    \
  __attribute__((visibility("default"))) void troupe_seed_##kind(void* generator,                  \
                                                                 std::uint64_t seed) {             \
    static const auto theirs = original<SeedFunction>(symbol);                                     \
    if (const Core* const mine = core)                                                             \
      mine->seed(generator, seed, theirs);                                                         \
    else                                                                                           \
      theirs(generator, seed);                                                                     \
  }

TROUPE_SEED(cpu, "_ZN2at16CPUGeneratorImpl16set_current_seedEm")
TROUPE_SEED(cuda, "_ZN2at17CUDAGeneratorImpl16set_current_seedEm")
#undef TROUPE_SEED

} // namespace troupe::learner::transparent

/// The C library's entry into a program. The program's main runs between begin() and end().
TROUPE_EXPORT int __libc_start_main(troupe::learner::transparent::Main program, int argc,
                                    char** argv, void (*init)(), void (*fini)(),
                                    void (*loader_fini)(), void* stack_end) {
  using namespace troupe::learner::transparent;
  program_main = program;
  const auto theirs = original<decltype(&__libc_start_main)>("__libc_start_main");
  return theirs(main_between, argc, argv, init, fini, loader_fini, stack_end);
}

TROUPE_EXPORT [[noreturn]] void exit(int exit_code) noexcept {
  using namespace troupe::learner::transparent;
  end(exit_code);
  original<void (*)(int)>("exit")(exit_code);
  __builtin_unreachable();
}

#include "env/caster/cuda/batch_caster.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <utility>

#include "env/caster/cuda/batch_drawing.hpp"

namespace troupe::env {

namespace {

using caster::CudaModule;

constexpr const char* kModuleFile = "libtroupe_caster_cuda.so";

struct LoadedModule {
  const CudaModule* module = nullptr;
  std::string reason; // why the module could not be loaded
};

/// Loads the module once; it stays loaded until the process exits.
const LoadedModule& loaded_module() {
  static const LoadedModule loaded = []() -> LoadedModule {
    void* library = ::dlopen(kModuleFile, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      return {nullptr, std::string(::dlerror())
                           + "; build the target troupe_caster_cuda (it needs a CUDA toolkit and "
                             "TROUPE_CUDA) and name its folder in LD_LIBRARY_PATH"};
    const auto* module =
        static_cast<const CudaModule*>(::dlsym(library, "troupe_caster_cuda_module"));
    if (module == nullptr || module->version != CudaModule::kVersion)
      return {nullptr, std::string(kModuleFile) + " has a different version; rebuild both"};
    return {module, {}};
  }();
  return loaded;
}

std::unique_ptr<caster::CudaDevice> open_device(int device) {
  if (const std::string why = BatchCaster::unavailable(device); !why.empty())
    throw std::runtime_error("no GPU can draw: " + why);
  return loaded_module().module->open(device);
}

} // namespace

struct BatchCaster::Impl {
  Impl(std::shared_ptr<const CasterModel> model, int environments, const CastOptions& options,
       int threads, int number)
      : device(open_device(number)),
        drawing(std::move(model), environments, options, threads, *device) {}

  std::unique_ptr<caster::CudaDevice> device;
  caster::BatchDrawing drawing;
};

BatchCaster::BatchCaster(std::shared_ptr<const CasterModel> model, int environments,
                         const CastOptions& options, int threads, int device)
    : impl_(std::make_unique<Impl>(std::move(model), environments, options, threads, device)) {}
BatchCaster::~BatchCaster() = default;
BatchCaster::BatchCaster(BatchCaster&&) noexcept = default;

std::string BatchCaster::unavailable(int device) {
  const LoadedModule& loaded = loaded_module();
  const std::string why = loaded.module ? loaded.module->unavailable(device) : loaded.reason;
  return why.empty() ? why : why + "; or draw with the ray caster, which needs no GPU";
}

int BatchCaster::environments() const {
  return static_cast<int>(impl_->drawing.environments());
}

std::size_t BatchCaster::bytes() const {
  return impl_->drawing.bytes();
}

const std::uint8_t* BatchCaster::pictures() const {
  return impl_->device->pictures();
}

void BatchCaster::draw(std::span<const mjModel* const> models,
                       std::span<const mjData* const> states, std::span<std::uint8_t> host) {
  impl_->drawing.draw(models, states, host);
}

} // namespace troupe::env

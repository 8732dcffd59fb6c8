#include "env/caster/cuda/batch_caster.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <utility>

#include "env/caster/cuda/batch_frames.hpp"
#include "env/caster/cuda/cuda_device.hpp"

namespace troupe::env {

namespace {

using caster::CudaModule;

constexpr const char* kModuleFile = "libtroupe_caster_cuda.so";

struct LoadedModule {
  const CudaModule* module = nullptr;
  std::string reason; // why there is none
};

/// Loads the module once; it stays for the rest of the process.
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
      return {nullptr, std::string(kModuleFile) + " is of another version; build both again"};
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
       int number)
      : device(open_device(number)),
        frames(std::move(model), environments, options, *device),
        bytes(frames.format().bytes() * static_cast<std::size_t>(environments)),
        effects(options.effects) {
    constexpr int kMostEnvironments = 65535; // a kernel's grid along z
    if (environments > kMostEnvironments)
      throw std::invalid_argument("environments: " + std::to_string(environments)
                                  + " exceeds the most of one batch, "
                                  + std::to_string(kMostEnvironments) + "; make several batches");
    device->allocate_pictures(bytes);
  }

  std::unique_ptr<caster::CudaDevice> device;
  caster::BatchFrames frames;
  std::size_t bytes;
  bool effects;
};

BatchCaster::BatchCaster(std::shared_ptr<const CasterModel> model, int environments,
                         const CastOptions& options, int device)
    : impl_(std::make_unique<Impl>(std::move(model), environments, options, device)) {}
BatchCaster::~BatchCaster() = default;
BatchCaster::BatchCaster(BatchCaster&&) noexcept = default;

std::string BatchCaster::unavailable(int device) {
  const LoadedModule& loaded = loaded_module();
  const std::string why = loaded.module ? loaded.module->unavailable(device) : loaded.reason;
  return why.empty() ? why : why + "; or draw with the ray caster, which needs no GPU";
}

int BatchCaster::environments() const {
  return impl_->frames.environments();
}

std::size_t BatchCaster::bytes() const {
  return impl_->bytes;
}

const std::uint8_t* BatchCaster::pictures() const {
  return impl_->device->pictures();
}

void BatchCaster::draw(std::span<const mjModel* const> models,
                       std::span<const mjData* const> states, std::span<std::uint8_t> host) {
  if (!host.empty() && host.size() != bytes())
    throw std::invalid_argument("the pictures need a buffer of " + std::to_string(bytes())
                                + " bytes, or an empty one; it has " + std::to_string(host.size()));
  impl_->frames.build(models, states);
  const std::size_t staged = impl_->frames.bytes();
  const auto memory = impl_->device->staging(staged);
  const caster::PackedFrames packed = impl_->frames.pack(memory.host, memory.device);
  if (packed.most_words > caster::kMostWords)
    throw std::runtime_error("the scene shows more than the GPU's kernel can list ("
                             + std::to_string(packed.most_words) + " words of candidates, at most "
                             + std::to_string(caster::kMostWords) + "); draw it with RayCaster");
  impl_->device->draw(staged,
                      {.frames = packed.frames,
                       .environments = environments(),
                       .format = impl_->frames.format(),
                       .effects = impl_->effects,
                       .any_perspective = packed.any_perspective,
                       .any_orthographic = packed.any_orthographic,
                       .words = packed.most_words},
                      host);
}

} // namespace troupe::env

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "env/render/gl_context.hpp"

namespace troupe::env {

namespace {

// The part of EGL that is needed (from the Khronos registry). It is declared here so that no header
// has to be installed and nothing is linked by accident.
using Display = void*;
using Config = void*;
using Context = void*;
using Surface = void*;
using Device = void*;
using Int = std::int32_t;
constexpr Int kNone = 0x3038;
constexpr Int kExtensions = 0x3055;
constexpr unsigned kOpenGlApi = 0x30A2;
constexpr unsigned kPlatformDevice = 0x313F;
constexpr unsigned kPlatformSurfaceless = 0x31DD;
constexpr std::array<Int, 19> kConfig = {0x3024, 8,      0x3023, 8,
                                         0x3022, 8,      0x3021, 8, // red, green, blue, alpha bits
                                         0x3025, 24,     0x3026, 8, // depth, stencil bits
                                         0x3033, 1,                 // surface type: pbuffer
                                         0x3040, 8,                 // renderable: OpenGL
                                         0x303F, 0x308E,            // colour buffer: RGB
                                         kNone};
constexpr std::array<Int, 5> kTinySurface = {0x3057, 16, 0x3056, 16, kNone}; // width, height

/// libEGL. It is never unloaded, because drivers do not survive that.
struct EglLibrary {
  void* (*get_proc_address)(const char*) = nullptr;
  Display (*get_display)(void*) = nullptr;
  Display (*get_platform_display)(unsigned, void*, const Int*) = nullptr; // may be absent
  unsigned (*query_devices)(Int, Device*, Int*) = nullptr;                // may be absent
  const char* (*query_device_string)(Device, Int) = nullptr;              // may be absent
  unsigned (*initialize)(Display, Int*, Int*) = nullptr;
  unsigned (*choose_config)(Display, const Int*, Config*, Int, Int*) = nullptr;
  unsigned (*bind_api)(unsigned) = nullptr;
  Context (*create_context)(Display, Config, Context, const Int*) = nullptr;
  Surface (*create_pbuffer)(Display, Config, const Int*) = nullptr;
  unsigned (*make_current)(Display, Surface, Surface, Context) = nullptr;
  unsigned (*destroy_surface)(Display, Surface) = nullptr;
  unsigned (*destroy_context)(Display, Context) = nullptr;
};

std::string egl_load_error() {
  const char* text = dlerror();
  return text != nullptr ? text : "the library cannot be loaded";
}

template <typename F>
void find_egl_function(void* library, F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr)
    throw std::runtime_error(std::string("libEGL.so.1 lacks ") + name);
}

EglLibrary load_egl() {
  if (dlsym(RTLD_DEFAULT, "OSMesaGetProcAddress") != nullptr)
    throw std::runtime_error("this process already draws with OSMesa");
  void* handle = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw std::runtime_error(egl_load_error());
  EglLibrary egl;
  find_egl_function(handle, egl.get_proc_address, "eglGetProcAddress");
  find_egl_function(handle, egl.get_display, "eglGetDisplay");
  find_egl_function(handle, egl.initialize, "eglInitialize");
  find_egl_function(handle, egl.choose_config, "eglChooseConfig");
  find_egl_function(handle, egl.bind_api, "eglBindAPI");
  find_egl_function(handle, egl.create_context, "eglCreateContext");
  find_egl_function(handle, egl.create_pbuffer, "eglCreatePbufferSurface");
  find_egl_function(handle, egl.make_current, "eglMakeCurrent");
  find_egl_function(handle, egl.destroy_surface, "eglDestroySurface");
  find_egl_function(handle, egl.destroy_context, "eglDestroyContext");
  const auto extension = [&](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(egl.get_proc_address(name));
  };
  extension(egl.get_platform_display, "eglGetPlatformDisplayEXT");
  extension(egl.query_devices, "eglQueryDevicesEXT");
  extension(egl.query_device_string, "eglQueryDeviceStringEXT");
  return egl;
}

struct Candidate {
  unsigned platform = 0; // 0: the default display
  Device device = nullptr;
  std::string name;
};

/// GPUs, then software devices, then Mesa without a device, then the default display.
std::vector<Candidate> candidates(const EglLibrary& egl) {
  std::vector<Candidate> gpus;
  std::vector<Candidate> rest;
  std::array<Device, 64> devices{};
  Int count = 0;
  if (egl.query_devices != nullptr && egl.get_platform_display != nullptr
      && egl.query_devices(static_cast<Int>(devices.size()), devices.data(), &count) != 0) {
    for (Int i = 0; i < count; ++i) {
      Device device = devices[static_cast<std::size_t>(i)];
      const char* extensions = egl.query_device_string != nullptr
                                   ? egl.query_device_string(device, kExtensions)
                                   : nullptr;
      const bool software =
          extensions != nullptr && std::strstr(extensions, "EGL_MESA_device_software") != nullptr;
      (software ? rest : gpus)
          .push_back({kPlatformDevice, device,
                      "EGL, device " + std::to_string(i + 1) + " of " + std::to_string(count)});
    }
  }
  gpus.insert(gpus.end(), rest.begin(), rest.end());
  if (egl.get_platform_display != nullptr)
    gpus.push_back({kPlatformSurfaceless, nullptr, "EGL, surfaceless"});
  gpus.push_back({0, nullptr, "EGL, default display"});
  return gpus;
}

class EglContext final : public GlContext {
public:
  EglContext(const EglLibrary& egl, const Candidate& candidate) : egl_(egl) {
    display_ = candidate.platform == 0
                   ? egl_.get_display(nullptr)
                   : egl_.get_platform_display(candidate.platform, candidate.device, nullptr);
    if (display_ == nullptr || egl_.initialize(display_, nullptr, nullptr) == 0)
      throw std::runtime_error("no display");
    Config config = nullptr;
    Int count = 0;
    if (egl_.choose_config(display_, kConfig.data(), &config, 1, &count) == 0 || count < 1)
      throw std::runtime_error("no OpenGL configuration");
    egl_.bind_api(kOpenGlApi);
    context_ = egl_.create_context(display_, config, nullptr, nullptr);
    if (context_ == nullptr)
      throw std::runtime_error("no OpenGL context");
    surface_ = egl_.create_pbuffer(display_, config,
                                   kTinySurface.data()); // required, but MuJoCo draws elsewhere
    try {
      make_current();
      describe(candidate.name, egl_.get_proc_address);
    } catch (...) {
      destroy();
      throw;
    }
  }

  ~EglContext() override { destroy(); }

private:
  void destroy() {
    forget();
    if (surface_ != nullptr)
      egl_.destroy_surface(display_, surface_);
    egl_.destroy_context(display_, context_);
  }

  bool bind() override {
    egl_.bind_api(kOpenGlApi); // the API is chosen per thread
    return egl_.make_current(display_, surface_, surface_, context_) != 0;
  }

  void unbind() override { egl_.make_current(display_, nullptr, nullptr, nullptr); }

  EglLibrary egl_;
  Display display_ = nullptr;
  Context context_ = nullptr;
  Surface surface_ = nullptr;
};

} // namespace

std::shared_ptr<GlContext> make_egl_context() {
  const EglLibrary egl = load_egl();
  std::string tried;
  for (const Candidate& candidate : candidates(egl)) {
    try {
      auto context = std::make_shared<EglContext>(egl, candidate);
      // MuJoCo's loader looks up eglGetProcAddress in the process. It must see the library only
      // now.
      dlopen("libEGL.so.1", RTLD_NOW | RTLD_GLOBAL);
      return context;
    } catch (const std::runtime_error& error) {
      tried += (tried.empty() ? "" : ", ") + candidate.name + ": " + error.what();
    }
  }
  throw std::runtime_error(tried);
}

} // namespace troupe::env

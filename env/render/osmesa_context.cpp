#include <dlfcn.h>

#include <array>
#include <stdexcept>

#include "env/render/gl_context.hpp"

namespace troupe::env {

namespace {

using Context = void*;

struct OsmesaLibrary {
  Context (*create)(unsigned, int, int, int, Context) = nullptr;
  unsigned char (*make_current)(Context, void*, unsigned, int, int) = nullptr;
  void (*destroy)(Context) = nullptr;
  void* (*get_proc_address)(const char*) = nullptr;
};

std::string osmesa_load_error() {
  const char* text = dlerror();
  return text != nullptr ? text : "the library cannot be loaded";
}

template <typename F>
void find_osmesa_function(void* library, F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr)
    throw std::runtime_error(std::string("libOSMesa lacks ") + name);
}

/// Loads OSMesa visibly to the whole process, because MuJoCo's loader looks up OSMesaGetProcAddress
/// there.
OsmesaLibrary load_osmesa() {
  if (dlsym(RTLD_DEFAULT, "eglGetProcAddress") != nullptr)
    throw std::runtime_error("this process already draws with EGL");
  void* handle = nullptr;
  for (const char* name : {"libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so"})
    if (handle == nullptr)
      handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr)
    throw std::runtime_error(osmesa_load_error());
  OsmesaLibrary mesa;
  find_osmesa_function(handle, mesa.create, "OSMesaCreateContextExt");
  find_osmesa_function(handle, mesa.make_current, "OSMesaMakeCurrent");
  find_osmesa_function(handle, mesa.destroy, "OSMesaDestroyContext");
  find_osmesa_function(handle, mesa.get_proc_address, "OSMesaGetProcAddress");
  return mesa;
}

class OsMesaContext final : public GlContext {
public:
  explicit OsMesaContext(const OsmesaLibrary& mesa) : mesa_(mesa) {
    constexpr unsigned kRgba = 0x1908;
    context_ = mesa_.create(kRgba, 24, 8, 0, nullptr); // depth, stencil, accumulation bits
    if (context_ == nullptr)
      throw std::runtime_error("no context");
    try {
      make_current();
      describe("OSMesa", mesa_.get_proc_address);
    } catch (...) {
      forget();
      mesa_.destroy(context_);
      throw;
    }
    info_.software = true;
  }

  ~OsMesaContext() override {
    forget();
    mesa_.destroy(context_);
  }

private:
  static constexpr int kSide = 16; // pixels of the unused window

  bool bind() override {
    constexpr unsigned kUnsignedByte = 0x1401;
    return mesa_.make_current(context_, window_.data(), kUnsignedByte, kSide, kSide) != 0;
  }

  void unbind() override { mesa_.make_current(nullptr, nullptr, 0, 0, 0); }

  OsmesaLibrary mesa_;
  Context context_ = nullptr;
  std::array<unsigned char, 4 * kSide * kSide> window_{};
};

} // namespace

std::shared_ptr<GlContext> make_osmesa_context() {
  return std::make_shared<OsMesaContext>(load_osmesa());
}

} // namespace troupe::env

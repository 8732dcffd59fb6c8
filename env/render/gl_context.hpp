#pragma once

#include <memory>
#include <string>

#include "env/make.hpp"

namespace troupe::env {

/// Who draws.
struct GlInfo {
  std::string backend; // "EGL device 1 of 2 (EGL_MESA_device_software)", "OSMesa", …
  std::string vendor;
  std::string renderer; // "llvmpipe (LLVM 15.0.6, 256 bits)", "NVIDIA H200/PCIe/SSE2"
  std::string version;
  bool software = false; // no GPU: about a thousand times dearer than the physics
};

/// An off-screen OpenGL context. EGL and OSMesa are loaded at run time and never linked: MuJoCo
/// takes the first loader it finds in the process, so a process draws with one of the two for life.
/// There is one context per thread and backend, shared by that thread's renderers and destroyed
/// with the last of them; it may be destroyed on another thread once its own has ended.
class GlContext {
public:
  virtual ~GlContext() = default;

  /// Makes it the thread's current one; no cost when it is. Throws std::runtime_error when another
  /// thread holds it.
  virtual void make_current() = 0;

  const GlInfo& info() const { return info_; }

protected:
  GlInfo info_;
};

/// The calling thread's context, made on first use. Throws std::runtime_error, one line: what was
/// tried, what each said, what to install.
std::shared_ptr<GlContext> gl_of_this_thread(GlBackend backend);

} // namespace troupe::env

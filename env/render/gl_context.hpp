#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "env/environment_config.hpp"

namespace troupe::env {

/// Describes the OpenGL implementation.
struct GlInfo {
  std::string backend; // "EGL, device 1 of 2", "OSMesa", …
  std::string vendor;
  std::string renderer; // "llvmpipe (LLVM 15.0.6, 256 bits)", "NVIDIA H200/PCIe/SSE2"
  std::string version;
  bool software = false; // no GPU: about a thousand times slower than the physics
};

/// An off-screen OpenGL context. EGL and OSMesa are loaded at run time and never linked. MuJoCo
/// uses the first loader that it finds in the process, so a process draws with only one of the two
/// until it exits.
///
/// There is one context per thread and backend. The renderers of the thread share it, and it is
/// destroyed with the last of them. After its thread has ended, another thread may use or destroy
/// it.
class GlContext : public std::enable_shared_from_this<GlContext> {
public:
  virtual ~GlContext() = default;
  GlContext(const GlContext&) = delete;
  GlContext& operator=(const GlContext&) = delete;

  /// Makes this the calling thread's current context; costs nothing if it already is. Throws
  /// std::runtime_error if another running thread uses the context, or a new one cannot be used.
  void make_current();
  const GlInfo& info() const { return info_; }

  /// What the renderers of this context share: MuJoCo's textures and display lists. The key is the
  /// model, height, width, effects, samples and slices.
  using DrawKey = std::tuple<const void*, int, int, bool, int, int>;
  std::map<DrawKey, std::weak_ptr<void>>& shared() { return shared_; }

protected:
  GlContext() = default;

  virtual bool bind() = 0;   // to the calling thread
  virtual void unbind() = 0; // from the calling thread
  void forget();             // unbinds it from the calling thread; destructors call it first
  void describe(const std::string& backend, void* (*get_proc_address)(const char*));

  GlInfo info_;

private:
  friend struct GlThread;
  std::map<DrawKey, std::weak_ptr<void>> shared_;
};

/// Returns the calling thread's context, which is made on first use. Throws std::runtime_error with
/// one line: what was tried, why each attempt failed, and what to install.
std::shared_ptr<GlContext> gl_of_this_thread(GlBackend backend);

/// Makes Mesa's software renderer draw on the calling thread instead of its own helper threads.
/// This is 10 to 20% faster at the picture sizes of agents and leaves the other cores to the
/// learner. Call it first in main(): it sets the environment variable LP_NUM_THREADS (unless the
/// user has set it), which is not safe while other threads read the environment.
void draw_on_calling_thread();

// Each is in its own file. They throw std::runtime_error with a short reason.
std::shared_ptr<GlContext> make_egl_context();
std::shared_ptr<GlContext> make_osmesa_context();

} // namespace troupe::env

#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "env/environment_config.hpp"

namespace troupe::env {

/// A description of OpenGL's implementation.
struct GlInfo {
  std::string backend; // "EGL, device 1 of 2", "OSMesa", …
  std::string vendor;
  std::string renderer; // "llvmpipe (LLVM 15.0.6, 256 bits)", "NVIDIA H200/PCIe/SSE2"
  std::string version;
  bool software = false; // no GPU: about a thousand times slower than the physics
};

/// An off-screen OpenGL context. EGL and OSMesa are loaded at run time and never linked: MuJoCo
/// takes the first loader it finds in the process, so a process draws with one of the two until it
/// ends. There is one context per thread and backend, shared by that thread's renderers and
/// destroyed with the last of them; once its thread has ended it may be used or destroyed on
/// another.
class GlContext {
public:
  virtual ~GlContext() = default;
  GlContext(const GlContext&) = delete;
  GlContext& operator=(const GlContext&) = delete;

  /// Makes it the calling thread's current one; no cost when it is. Throws std::runtime_error when
  /// another living thread holds it.
  void make_current();
  const GlInfo& info() const { return info_; }

  /// What renderers of this context share: MuJoCo's textures and display lists, by model, height,
  /// width, effects, samples and slices.
  using DrawKey = std::tuple<const void*, int, int, bool, int, int>;
  std::map<DrawKey, std::weak_ptr<void>>& shared() { return shared_; }

protected:
  GlContext() = default;

  virtual bool bind() = 0;   // to the calling thread
  virtual void unbind() = 0; // from the calling thread
  void forget();             // a destructor's first act: unbinds if this thread holds it
  void describe(const std::string& backend, void* (*get_proc_address)(const char*));

  GlInfo info_;

private:
  friend struct GlThread;
  std::map<DrawKey, std::weak_ptr<void>> shared_;
};

/// The calling thread's context, made on first use. Throws std::runtime_error, one line: what was
/// tried, why each failed, what to install.
std::shared_ptr<GlContext> gl_of_this_thread(GlBackend backend);

/// Tells Mesa's software renderer to draw on the calling thread instead of helper threads of its
/// own: 10 to 20% faster at the sizes of agents, and no fight with the learner over cores. To be
/// called first thing in main(): it sets the environment variable LP_NUM_THREADS (unless the user
/// has), which must not happen while other threads read the environment.
void draw_on_calling_thread();

// One file each. They throw std::runtime_error with the reason in a few words.
std::shared_ptr<GlContext> make_egl_context();
std::shared_ptr<GlContext> make_osmesa_context();

} // namespace troupe::env

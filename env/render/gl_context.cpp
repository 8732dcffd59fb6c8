#include "env/render/gl_context.hpp"

#include <cstdlib>
#include <mutex>
#include <stdexcept>

namespace troupe::env {

/// The OpenGL state of a thread, since a context is bound to a thread.
struct GlThread {
  std::weak_ptr<GlContext> egl;
  std::weak_ptr<GlContext> osmesa;
  const GlContext* current = nullptr;
  std::weak_ptr<GlContext> held; // the same; another thread may have destroyed it

  ~GlThread() {
    if (const auto context = held.lock())
      context->unbind(); // so that another thread can take it over or destroy it
  }
};

namespace {

thread_local GlThread this_thread;

using Make = std::shared_ptr<GlContext> (*)();

std::shared_ptr<GlContext> get_or_make(std::weak_ptr<GlContext>& known, Make make) {
  if (auto context = known.lock())
    return context;
  static std::mutex making; // drivers are loaded and initialised under this lock
  const std::lock_guard lock(making);
  auto context = make();
  context->make_current(); // its constructor could not tell the thread what it holds
  known = context;
  return context;
}

std::string gl_text(const unsigned char* (*get_string)(unsigned), unsigned name) {
  const unsigned char* text = get_string(name);
  return text != nullptr ? reinterpret_cast<const char*>(text) : "?";
}

} // namespace

void GlContext::make_current() {
  if (this_thread.current == this && !this_thread.held.expired())
    return;
  if (!bind())
    throw std::runtime_error(
        info_.backend.empty()
            ? "a new OpenGL context cannot be made current"
            : "an OpenGL context (" + info_.backend
                  + ") is used by another thread; an environment that renders must stay on the "
                    "thread of its first reset");
  this_thread.current = this;
  this_thread.held = weak_from_this();
}

void GlContext::forget() {
  if (this_thread.current != this)
    return;
  unbind();
  this_thread.current = nullptr;
  this_thread.held.reset();
}

void GlContext::describe(const std::string& backend, void* (*get_proc_address)(const char*)) {
  info_.backend = backend;
  const auto get_string =
      reinterpret_cast<const unsigned char* (*)(unsigned)>(get_proc_address("glGetString"));
  if (get_string == nullptr)
    throw std::runtime_error(backend + " has no glGetString");
  info_.vendor = gl_text(get_string, 0x1F00);
  info_.renderer = gl_text(get_string, 0x1F01);
  info_.version = gl_text(get_string, 0x1F02);
  for (const char* name : {"llvmpipe", "softpipe", "swrast", "Software", "SWR"})
    if (info_.renderer.find(name) != std::string::npos)
      info_.software = true;
}

void draw_on_calling_thread() {
  setenv("LP_NUM_THREADS", "0", 0);
}

std::shared_ptr<GlContext> gl_of_this_thread(GlBackend backend) {
  if (backend == GlBackend::automatic) // use the one that this thread already has
    for (const auto& known : {this_thread.egl, this_thread.osmesa})
      if (auto context = known.lock())
        return context;
  std::string tried;
  const auto attempt = [&](const char* name, std::weak_ptr<GlContext>& known, Make make) {
    try {
      return get_or_make(known, make);
    } catch (const std::runtime_error& error) {
      tried += std::string(tried.empty() ? "" : "; ") + name + ": " + error.what();
      return std::shared_ptr<GlContext>();
    }
  };
  if (backend != GlBackend::osmesa)
    if (auto context = attempt("EGL", this_thread.egl, &make_egl_context))
      return context;
  if (backend != GlBackend::egl)
    if (auto context = attempt("OSMesa", this_thread.osmesa, &make_osmesa_context))
      return context;
  throw std::runtime_error("no OpenGL to draw with (" + tried
                           + "); install libegl1 and libgl1-mesa-dri, or libosmesa6, or train from"
                             " states");
}

} // namespace troupe::env

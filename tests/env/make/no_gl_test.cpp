// Simulates a machine without OpenGL: this program's dlopen finds neither EGL nor OSMesa.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "env/make/make.hpp"
#include "env/render/gl_context.hpp"

extern "C" void* dlopen(const char* name, int flags) {
  using Open = void* (*)(const char*, int);
  static const auto real = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen"));
  const bool gl =
      name != nullptr
      && (std::strstr(name, "libEGL") != nullptr || std::strstr(name, "libOSMesa") != nullptr);
  return real(gl ? "libabsent-for-this-test.so" : name, flags);
}

using namespace troupe::env;

TEST_CASE("Without OpenGL, the error says in one line what was tried and what to install") {
  try {
    make_environment(
        {.task = "cartpole_balance", .pixels = PixelOptions{.renderer = RendererKind::opengl}});
    FAIL("an environment that renders was made without OpenGL");
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    for (const char* part : {"EGL: ", "OSMesa: ", "libegl1", "libosmesa6"})
      CHECK_MESSAGE(text.find(part) != std::string::npos, part);
    CHECK(text.find('\n') == std::string::npos);
  }
  CHECK_NOTHROW(make_environment({.task = "cartpole_balance"})); // observing states needs no OpenGL
  // nor does the ray caster, the default renderer
  const auto drawn = make_environment({.task = "cartpole_balance", .pixels = PixelOptions{}});
  std::vector<std::byte> picture(drawn->spec().observation_bytes());
  CHECK_NOTHROW(drawn->reset(1, picture));
  CHECK(std::any_of(picture.begin(), picture.end(),
                    [&](std::byte value) { return value != picture.front(); }));
  CHECK_THROWS_WITH_AS(gl_of_this_thread(GlBackend::egl), doctest::Contains("EGL"),
                       std::runtime_error);
}

// mjModel in, pixels out: a scene of MuJoCo's, simulated for a second and drawn without OpenGL.
//   ray_caster [PICTURE.ppm]
// The model may as well come from a file (mj_loadXML).
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>
#include <vector>

#include <mujoco/mujoco.h>

#include <env/caster/ray_caster.hpp>

namespace {

using namespace troupe::env;

constexpr const char* kScene = R"(
  <mujoco>
    <asset>
      <texture name="squares" type="2d" builtin="checker" rgb1=".2 .3 .4" rgb2=".3 .4 .5" width="64" height="64"/>
      <material name="floor" texture="squares" texrepeat="6 6" reflectance=".2"/>
    </asset>
    <worldbody>
      <light pos="0 -1 3" dir="0 .3 -1"/>
      <camera name="front" pos="0 -2.4 1.2" xyaxes="1 0 0 0 .4 .9"/>
      <geom type="plane" size="2 2 .1" material="floor"/>
      <body pos="-.5 0 1.2"> <freejoint/> <geom type="box" size=".2 .2 .2" rgba=".8 .3 .2 1"/> </body>
      <body pos=".5 0 .9"> <freejoint/> <geom type="sphere" size=".25" rgba=".2 .6 .3 1"/> </body>
    </worldbody>
  </mujoco>)";

/// Throws std::runtime_error with the compiler's message.
mjModel* compile(const char* xml) {
  char error[1024] = "";
  const std::unique_ptr<mjSpec, decltype(&mj_deleteSpec)> spec(
      mj_parseXMLString(xml, nullptr, error, sizeof error), &mj_deleteSpec);
  if (!spec)
    throw std::runtime_error(error);
  mjModel* model = mj_compile(spec.get(), nullptr);
  if (model == nullptr)
    throw std::runtime_error(mjs_getError(spec.get()));
  return model;
}

int draw(const char* file) {
  const auto scene = std::make_shared<const CompiledModel>("scene", compile(kScene), // takes it
                                                           std::vector<std::string>{});
  const mjModel& model = scene->get();
  const std::unique_ptr<mjData, decltype(&mj_deleteData)> data(mj_makeData(&model), &mj_deleteData);
  while (data->time < 1)
    mj_step(&model, data.get());
  mj_forward(&model, data.get());

  RayCaster caster(caster_model(scene), {.height = 240,
                                         .width = 320,
                                         .camera = mj_name2id(&model, mjOBJ_CAMERA, "front"),
                                         .layout = PixelLayout::channels_last});
  std::vector<std::uint8_t> picture(caster.bytes());
  caster.draw(model, *data, picture);
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kPictures = 20;
  for (int i = 0; i < kPictures; ++i)
    caster.draw(model, *data, picture);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;

  std::ofstream out(file, std::ios::binary);
  out << "P6 320 240 255\n";
  out.write(reinterpret_cast<const char*>(picture.data()),
            static_cast<std::streamsize>(picture.size()));
  if (!out.flush())
    throw std::runtime_error(std::string(file) + " cannot be written");
  const std::set<std::uint8_t> values(picture.begin(), picture.end());
  std::printf("%s: %zu bytes, %zu shades, %.2f ms a picture\n", file, picture.size(), values.size(),
              time.count() / kPictures);
  return values.size() > 20 ? 0 : 1; // not all of one colour
}

} // namespace

int main(int argc, char** argv) {
  try {
    return draw(argc > 1 ? argv[1] : "scene.ppm");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

#pragma once

#include <cmath>
#include <cstdio>
#include <string>

#include "env/random.hpp"

namespace troupe::env {

/// A model of random shapes, materials, textures of odd sizes, lights and cameras, determined by
/// its seed. Camera 0 is outside most of it.
class RandomScene {
public:
  explicit RandomScene(std::uint64_t seed) : random_(seed) {}

  std::string xml() {
    assets_ = "<mesh name=\"wedge\" vertex=\"0 0 0  1 0 0  0 1 0  0 0 1  1 1 .2\"/>"
              "<hfield name=\"hills\" nrow=\"3\" ncol=\"4\" size=\"1 1 .5 .1\" elevation=\"0 1 0 2"
              "  1 0 2 0  0 2 1 1\"/>";
    const int materials = whole(1, 5);
    for (int i = 0; i < materials; ++i)
      add_material(i);
    if (chance(.6))
      assets_ += texture("sky", "skybox", 6);
    std::string world = "<camera pos=\"" + numbers(3, -.3, .3) + "\" mode=\"fixed\" euler=\""
                        + numbers(3, -20, 20) + "\" fovy=\"" + number(10, 120) + "\"/>"
                        + "<camera name=\"at\" mode=\"targetbody\" target=\"b0\" pos=\""
                        + numbers(3, 2, 4) + "\""
                        + (chance(.2) ? " projection=\"orthographic\"" : "") + "/>";
    const int lights = whole(0, 5);
    for (int i = 0; i < lights; ++i)
      world += light();
    if (chance(.7))
      world += "<geom type=\"plane\" size=\"" + std::string(chance(.3) ? "0 0 .1" : "3 2 .1")
               + "\" pos=\"0 0 -1\" material=\"m0\"/>";
    const int bodies = whole(1, 12);
    for (int i = 0; i < bodies; ++i) {
      world += "<body name=\"b" + std::to_string(i) + "\" pos=\"" + numbers(3, -1, 1)
               + "\" euler=\"" + numbers(3, -180, 180) + "\"><freejoint/>" + geom(materials);
      if (chance(.3))
        world += site();
      world += "</body>";
    }
    return "<mujoco><visual><headlight active=\"" + std::string(chance(.8) ? "1" : "0")
           + "\"/><quality shadowsize=\"1024\"/><map fogstart=\"" + number(-1, 2) + "\" fogend=\""
           + number(0, 4) + "\"/><rgba fog=\"" + numbers(4, 0, 1) + "\"/></visual><asset>" + assets_
           + "</asset><worldbody>" + world + "</worldbody></mujoco>";
  }

private:
  bool chance(double share) { return random_.uniform() < share; }
  int whole(int low, int high) {
    return low + static_cast<int>(random_.uniform() * (high - low + 1) * .999999);
  }
  std::string number(double low, double high) {
    char text[32];
    std::snprintf(text, sizeof text, "%.5g", random_.uniform(low, high));
    return text;
  }
  std::string numbers(int count, double low, double high) {
    std::string out;
    for (int i = 0; i < count; ++i)
      out += (i > 0 ? " " : "") + number(low, high);
    return out;
  }
  /// From 0.1 mm to 4 m.
  std::string sizes(int count) {
    std::string out;
    for (int i = 0; i < count; ++i) {
      char text[32];
      std::snprintf(
          text, sizeof text, "%.4g ",
          std::pow(10., chance(.8) ? random_.uniform(-1.2, -.2) : random_.uniform(-4, .6)));
      out += text;
    }
    return out;
  }

  std::string texture(const std::string& name, const std::string& type, int faces) {
    const int width = whole(1, 70);
    static constexpr const char* kBuiltin[] = {"gradient", "checker", "flat"};
    return "<texture name=\"" + name + "\" type=\"" + type + "\" builtin=\"" + kBuiltin[whole(0, 2)]
           + "\" width=\"" + std::to_string(width) + "\" height=\""
           + std::to_string(faces > 1 ? faces * width : whole(1, 70)) + "\" rgb1=\""
           + numbers(3, 0, 1) + "\" rgb2=\"" + numbers(3, 0, 1) + "\"/>";
  }

  void add_material(int i) {
    const std::string n = std::to_string(i);
    const bool textured = chance(.6);
    if (textured)
      assets_ += chance(.5) ? texture("t" + n, "2d", 1) : texture("t" + n, "cube", 6);
    assets_ += "<material name=\"m" + n + "\" rgba=\"" + numbers(3, 0, 1) + " "
               + (chance(.7) ? "1" : number(0, 1)) + "\" emission=\"" + number(0, .5)
               + "\" specular=\"" + number(0, 1) + "\" shininess=\"" + number(0, 1)
               + "\" reflectance=\"" + (chance(.6) ? "0" : number(0, 1)) + "\""
               + (textured ? " texture=\"t" + n + "\" texrepeat=\"" + numbers(2, .2, 5)
                                 + "\" texuniform=\"" + (chance(.5) ? "true" : "false") + "\""
                           : "")
               + "/>";
  }

  std::string light() {
    return "<light pos=\"" + numbers(2, -3, 3) + " " + number(1, 4) + "\" dir=\""
           + numbers(2, -1, 1) + " -1\" directional=\"" + (chance(.4) ? "true" : "false")
           + "\" castshadow=\"" + (chance(.5) ? "true" : "false") + "\" cutoff=\"" + number(5, 90)
           + "\" exponent=\"" + number(0, 20) + "\" attenuation=\"1 " + numbers(2, 0, .3)
           + "\" diffuse=\"" + numbers(3, 0, 1) + "\" ambient=\"" + numbers(3, 0, .3) + "\"/>";
  }

  std::string geom(int materials) {
    static constexpr const char* kTypes[] = {"sphere",   "capsule", "ellipsoid",
                                             "cylinder", "box",     "mesh"};
    const int type = whole(0, 5);
    return std::string("<geom type=\"") + kTypes[type] + "\" "
           + (type == 5 ? std::string("mesh=\"wedge\"") : "size=\"" + sizes(3) + "\"")
           + " mass=\"1\" material=\"m" + std::to_string(whole(0, materials - 1)) + "\""
           + (chance(.2) ? " rgba=\"" + numbers(4, 0, 1) + "\"" : "") + "/>";
  }

  std::string site() {
    static constexpr const char* kTypes[] = {"sphere", "capsule", "ellipsoid", "cylinder", "box"};
    return std::string("<site type=\"") + kTypes[whole(0, 4)] + "\" size=\"" + sizes(3)
           + "\" pos=\"" + numbers(3, -.5, .5) + "\" rgba=\"" + numbers(4, 0, 1) + "\"/>";
  }

  Random random_;
  std::string assets_;
};

} // namespace troupe::env

#include "experiments/play/command.hpp"

#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "env/text/joined.hpp"
#include "env/text/json_depth.hpp"

namespace troupe::experiments::play {
namespace {

using Json = nlohmann::json;
using Kind = Command::Kind;

constexpr std::size_t kMostCommands = 256;
constexpr double kMostSpeed = 100;
constexpr int kDeepest = 8;

struct KindName {
  const char* name;
  Kind kind;
  double least; // minimum of x and y
  double most;
};
constexpr std::array<KindName, 12> kKinds{{{"pause", Kind::pause, 0, 0},
                                           {"resume", Kind::resume, 0, 0},
                                           {"step", Kind::step, 0, 0},
                                           {"restart", Kind::restart, 0, 0},
                                           {"speed", Kind::speed, 0.01, kMostSpeed},
                                           {"next_camera", Kind::next_camera, 0, 0},
                                           {"turn", Kind::turn, -10, 10},
                                           {"shift", Kind::shift, -10, 10},
                                           {"zoom", Kind::zoom, -10, 10},
                                           {"grab", Kind::grab, -1, 1},
                                           {"pull", Kind::pull, -10, 10},
                                           {"release", Kind::release, 0, 0}}};

std::string short_text(const Json& value) {
  constexpr std::size_t kMost = 60;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > kMost ? text.substr(0, kMost) + "…" : text;
}

const KindName& kind_of(const Json& command) {
  if (command.is_object())
    if (const auto name = command.find("do"); name != command.end() && name->is_string())
      for (const KindName& kind : kKinds)
        if (name->get_ref<const std::string&>() == kind.name)
          return kind;
  throw std::invalid_argument(short_text(command) + ": do must be one of "
                              + env::joined(kKinds, ", ", &KindName::name));
}

double number(const Json& command, const char* key, const KindName& kind, double absent) {
  const auto found = command.find(key);
  if (found == command.end())
    return absent;
  const double value = found->is_number() ? found->get<double>() : std::nan("");
  if (!(value >= kind.least && value <= kind.most))
    throw std::invalid_argument(std::string(kind.name) + ": " + key + " is " + short_text(*found)
                                + "; it must be a number from " + std::to_string(kind.least)
                                + " to " + std::to_string(kind.most));
  return value;
}

} // namespace

std::vector<Command> read_commands(const std::string& text) {
  if (env::is_deeper_than(text, kDeepest))
    throw std::invalid_argument("the body must be nested at most " + std::to_string(kDeepest)
                                + " deep");
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("commands") || !json["commands"].is_array()
      || json["commands"].size() > kMostCommands)
    throw std::invalid_argument("the body must be {\"commands\": […]} with at most "
                                + std::to_string(kMostCommands) + " of them");
  std::vector<Command> read;
  for (const Json& command : json["commands"]) {
    const KindName& kind = kind_of(command);
    const double absent = kind.kind == Kind::speed ? 1 : 0;
    read.push_back({kind.kind, number(command, "x", kind, absent),
                    kind.kind == Kind::speed ? 0 : number(command, "y", kind, 0)});
  }
  return read;
}

} // namespace troupe::experiments::play

#include "learner/data/formats/minari_spaces.hpp"

#include <algorithm>
#include <cmath>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "learner/data/pictures/data_error.hpp"

namespace troupe::learner::data {

using Json = nlohmann::json;

Json space_of(const Json& metadata, const char* name, const std::filesystem::path& source) {
  if (!metadata.contains(name) || !metadata.at(name).is_string())
    throw DataError(source.string() + " has no \"" + name
                    + "\"; write the data set with minari 0.5 or newer");
  static const std::regex infinite("-?(Infinity|NaN)");
  try {
    return Json::parse(std::regex_replace(metadata.at(name).get<std::string>(), infinite, "null"));
  } catch (const Json::exception& error) {
    throw DataError(source.string() + ": its \"" + name + "\" is no space: " + error.what());
  }
}

namespace {

std::vector<double> numbers(const Json& list) {
  std::vector<double> out;
  for (const Json& x : list.is_array() ? list : Json::array({list}))
    out.push_back(x.is_null() ? INFINITY : x.get<double>());
  return out;
}

/// Throws std::invalid_argument unless each choice has at least one value, and a first value.
void check_choices(const Actions& actions, const Json& space) {
  if (actions.start.size() != actions.choices.size()
      || std::ranges::any_of(actions.choices, [](std::int64_t n) { return n < 1; }))
    throw std::invalid_argument("the action space is " + space.dump()
                                + "; each choice needs at least one value, and one \"start\"");
}

} // namespace

Actions actions_of(const Json& space) {
  const std::string type = space.at("type");
  Actions out;
  if (type == "Box") {
    if (space.at("shape").size() != 1)
      throw std::invalid_argument("the action space is a Box of shape " + space.at("shape").dump()
                                  + "; agents take vectors, [n]");
    out.low = numbers(space.at("low"));
    out.high = numbers(space.at("high"));
    out.choices.resize(out.low.size());
    for (std::size_t i = 0; i < out.low.size(); ++i)
      if (i >= out.high.size()
          || !(std::isfinite(out.low[i]) && std::isfinite(out.high[i]) && out.low[i] < out.high[i]))
        throw std::invalid_argument("number " + std::to_string(i)
                                    + " of the action space has no finite bounds; agents take "
                                      "bounded actions");
  } else if (type == "Discrete") {
    out.choices = {space.at("n").get<std::int64_t>()};
    out.start = {space.value("start", 0.0)};
    check_choices(out, space);
  } else if (type == "MultiDiscrete" && space.at("nvec").is_array()) {
    out.choices = space.at("nvec").get<std::vector<std::int64_t>>();
    out.start = space.contains("start") ? numbers(space.at("start"))
                                        : std::vector<double>(out.choices.size());
    check_choices(out, space);
  } else {
    throw std::invalid_argument("the action space is a " + type
                                + "; agents take Box, Discrete and MultiDiscrete");
  }
  if (out.start.empty())
    out.start.resize(out.choices.size());
  return out;
}

Seen seen_of(Json space, const std::string& observation) {
  Seen seen{.path = "observations", .space = std::move(space)};
  std::istringstream names(observation);
  for (std::string name; std::getline(names, name, '/');) {
    const Json& inner = seen.space.value("subspaces", Json::object());
    if (!inner.is_object() || !inner.contains(name))
      throw std::invalid_argument("--observation " + observation + ": there is no \"" + name
                                  + "\" in " + seen.path);
    seen.path += "/" + name;
    seen.space = Json(inner.at(name));
  }
  if (seen.space.at("type") == "Dict") {
    std::string known;
    for (const auto& [name, inner] : seen.space.at("subspaces").items())
      known += (known.empty() ? "" : ", ") + name;
    throw std::invalid_argument(seen.path + " is a dictionary of " + known
                                + "; choose one with --observation");
  }
  return seen;
}

bool is_picture(const Json& space) {
  return space.value("dtype", "") == "uint8" && space.at("shape").size() == 3;
}

env::ArraySpec frame_of(const Seen& seen, bool jpeg) {
  const Json& space = seen.space;
  const std::string type = space.at("type");
  if (type == "Discrete")
    return {"state", env::ElementType::float32, {1}};
  if (type != "Box")
    throw std::invalid_argument(seen.path + " is a " + type + "; agents take Box and Discrete");
  const auto shape = space.at("shape").get<std::vector<std::int64_t>>();
  if (is_picture(space)) {
    if (jpeg)
      throw std::invalid_argument(seen.path
                                  + " holds pictures as JPEG, which are not what the "
                                    "environment drew; write them with "
                                    "jpeg_encoding=False");
    return {"pixels", env::ElementType::uint8, {shape[2], shape[0], shape[1]}};
  }
  std::int64_t elements = 1;
  for (const std::int64_t n : shape)
    elements *= n;
  return {"state", env::ElementType::float32, {elements}};
}

} // namespace troupe::learner::data

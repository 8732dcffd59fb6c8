#include "experiments/exporting/contract.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "env/make/make.hpp"
#include "env/text/json_depth.hpp"
#include "env/wrappers/observation_statistics.hpp"

namespace troupe::experiments {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "troupe policy contract 1";

/// The names of an array's elements: "name", or "name[0]", "name[1]" and so on.
std::vector<std::string> elements_of(const env::ArraySpec& array) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < array.elements(); ++i)
    names.push_back(array.elements() == 1 ? array.name
                                          : array.name + "[" + std::to_string(i) + "]");
  return names;
}

/// Returns the indices in "name[0,2]"; empty means all.
std::vector<std::size_t> chosen_in(const std::string& name) {
  std::vector<std::size_t> chosen;
  const auto bracket = name.find('[');
  for (std::size_t at = bracket; at != std::string::npos && at + 1 < name.size();
       at = name.find(',', at + 1))
    chosen.push_back(std::stoul(name.substr(at + 1)));
  return chosen;
}

/// The names of the elements of an array that wrappers derived from the bare environment's arrays.
/// "state" combines all floating-point arrays.
std::vector<std::string> names_in(const env::ArraySpec& shown, const env::EnvironmentSpec& bare) {
  const std::string base = shown.name.substr(0, shown.name.find('['));
  std::vector<std::string> all;
  for (const env::ArraySpec& array : bare.observations)
    if (array.name == base
        || (base == "state" && array.type != env::ElementType::uint8
            && array.type != env::ElementType::int64)) {
      const auto more = elements_of(array);
      all.insert(all.end(), more.begin(), more.end());
    }
  std::vector<std::string> names;
  for (const std::size_t i : chosen_in(shown.name))
    if (i < all.size())
      names.push_back(all[i]);
  if (shown.name == base)
    names = all;
  return names.size() == shown.elements() ? names : elements_of(shown);
}

std::vector<ContractElement> actions_of(const env::EnvironmentSpec& bare,
                                        const std::vector<std::string>& actuators) {
  std::vector<ContractElement> made;
  const std::size_t count = bare.action.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t choices = bare.action.choices_of(i);
    const bool named = actuators.size() == count;
    const bool bounded =
        std::isfinite(bare.action.minimum[i]) && std::isfinite(bare.action.maximum[i]);
    made.push_back({.name = named        ? actuators[i]
                            : count == 1 ? "action"
                                         : "action[" + std::to_string(i) + "]",
                    .unit = choices > 0 ? "choice"
                            : named     ? "control of the actuator"
                                        : "as the environment's",
                    .minimum = bounded ? bare.action.minimum[i] : 0,
                    .maximum = bounded ? bare.action.maximum[i] : 0,
                    .choices = choices});
  }
  return made;
}

void add_normalisation(const env::NormalizationConfig& config, PolicyContract& contract) {
  if (config.mode == "off")
    return;
  if (config.mode != "frozen")
    throw std::invalid_argument("environment.normalization.mode is \"" + config.mode
                                + "\": such statistics belong to each environment and are in no "
                                  "checkpoint; an exported policy needs mode \"frozen\" with a "
                                  "file (`troupe check environment … --statistics FILE`)");
  const env::ObservationStatistics known = env::read_statistics(config.file);
  contract.normalisation_clip = config.clip;
  std::size_t number = 0;
  for (ContractArray& array : contract.observations) {
    if (array.spec.type == env::ElementType::uint8)
      continue;
    array.mean = known.arrays.at(number).mean;
    for (std::size_t i = 0; i < array.mean.size(); ++i)
      array.deviation.push_back(known.deviation(number, i));
    ++number;
  }
}

Json json_of(const ContractElement& element) {
  Json made{{"name", element.name}, {"unit", element.unit}};
  if (element.choices > 0)
    made["choices"] = element.choices;
  else if (element.minimum < element.maximum) {
    made["minimum"] = element.minimum;
    made["maximum"] = element.maximum;
  }
  return made;
}

Json json_of(const ContractArray& array) {
  Json made{{"name", array.spec.name},
            {"type", env::element_name(array.spec.type)},
            {"shape", array.spec.shape}};
  Json elements = Json::array();
  for (const ContractElement& element : array.elements)
    elements.push_back(json_of(element));
  if (!array.elements.empty())
    made["elements"] = elements;
  if (!array.mean.empty())
    made["normalisation"] = {{"mean", array.mean}, {"standard_deviation", array.deviation}};
  return made;
}

Json json_of(const PolicyContract& contract) {
  Json observations = Json::array();
  for (const ContractArray& array : contract.observations)
    observations.push_back(json_of(array));
  Json actions = Json::array();
  for (std::size_t i = 0; i < contract.actions.size(); ++i) {
    Json action = json_of(contract.actions[i]);
    if (contract.actions[i].choices == 0)
      action["from_policy"] = {{"offset", contract.scales[i].offset},
                               {"gain", contract.scales[i].gain},
                               {"limit", contract.scales[i].limit}};
    actions.push_back(action);
  }
  Json joints = Json::array();
  for (const env::JointName& joint : contract.joints)
    joints.push_back({{"name", joint.name}, {"kind", joint.kind}, {"unit", joint.unit}});
  return {{"format", kFormat},
          {"task", contract.task},
          {"agent", contract.agent},
          {"experiment", contract.experiment},
          {"troupe", contract.version},
          {"updates", contract.updates},
          {"control_period_seconds", contract.control_period_seconds},
          {"history", contract.history},
          {"state_size", contract.state_size},
          {"normalisation_clip", contract.normalisation_clip},
          {"observations", observations},
          {"actions", actions},
          {"joints", joints}};
}

/// The first path at which two documents differ, with both values; empty if they are equal.
std::string difference_at(const std::string& path, const Json& ours, const Json& theirs) {
  if (ours.is_structured() && ours.type() == theirs.type()) {
    if (ours.size() != theirs.size())
      return path + ": the policy has " + std::to_string(ours.size()) + " entries, the other "
             + std::to_string(theirs.size());
    for (const auto& [key, value] : ours.items()) {
      const std::string inner = path + (ours.is_array() ? "[" + key + "]" : "." + key);
      if (ours.is_object() && !theirs.contains(key))
        return inner + ": the other has none";
      const Json& other = ours.is_array() ? theirs.at(std::stoul(key)) : theirs.at(key);
      if (std::string found = difference_at(inner, value, other); !found.empty())
        return found;
    }
    return {};
  }
  if (ours == theirs)
    return {};
  return path + ": the policy has " + ours.dump() + ", the other "
         + theirs.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The first difference that matters to users of a policy. Statistics belong to the policy and may
/// differ.
std::string difference(const Json& ours, const Json& theirs) {
  for (const char* key :
       {"observations", "actions", "history", "control_period_seconds", "state_size"}) {
    Json mine = ours.at(key);
    Json other = theirs.contains(key) ? theirs.at(key) : Json();
    for (Json* side : {&mine, &other})
      if (side->is_array())
        for (Json& entry : *side)
          if (entry.is_object()) {
            entry.erase("normalisation");
            entry.erase("from_policy");
          }
    if (std::string found = difference_at(key, mine, other); !found.empty())
      return found;
  }
  return {};
}

} // namespace

double PolicyContract::Scale::operator()(double number) const {
  return offset + gain * std::clamp(number, -limit, limit);
}

PolicyContract contract_of(const env::EnvironmentConfig& config) {
  env::EnvironmentConfig raw = config;
  raw.normalization = {};
  const auto wrapped = env::make_environment(raw);
  const auto bare = env::make_bare(config);
  const env::EnvironmentSpec& spec = wrapped->spec();
  const env::ModelNames model = env::model_names(*bare);
  PolicyContract made{.task = config.task,
                      .agent = {},
                      .experiment = {},
                      .version = {},
                      .observations = {},
                      .actions = actions_of(bare->spec(), model.actuators),
                      .joints = model.joints,
                      .history = spec.frame_stack,
                      .control_period_seconds =
                          spec.control_timestep_seconds * static_cast<double>(spec.action_repeat),
                      .scales = {}};
  for (std::size_t i = 0; i < spec.observations.size(); ++i) {
    ContractArray array{.spec = spec.observations[i], .elements = {}};
    if (i == 0)
      array.spec.shape.at(0) /= spec.frame_stack;
    if (!array.spec.is_picture())
      for (const std::string& name : names_in(array.spec, bare->spec()))
        array.elements.push_back(
            {.name = name, .unit = model.joints.empty() ? "as the environment's" : "SI"});
    made.observations.push_back(std::move(array));
  }
  add_normalisation(config.normalization, made);
  for (const ContractElement& action : made.actions) {
    const bool bounded = action.minimum < action.maximum;
    const double half = bounded ? (action.maximum - action.minimum) / 2 : 1;
    made.scales.push_back({.offset = bounded ? (action.maximum + action.minimum) / 2 : 0,
                           .gain = config.action_rescale ? half * config.action_clip : half,
                           .limit = config.action_rescale ? 1 : config.action_clip});
  }
  return made;
}

void normalise(const PolicyContract& contract, const env::EnvironmentSpec& spec,
               std::span<std::byte> observation) {
  for (std::size_t a = 0; a < spec.observations.size(); ++a) {
    const ContractArray& array = contract.observations[a];
    for (std::size_t i = 0; !array.mean.empty() && i < spec.observations[a].elements(); ++i) {
      std::byte* place = observation.data() + spec.observation_offset(a) + i * sizeof(float);
      float number = 0;
      std::memcpy(&number, place, sizeof number);
      const std::size_t k = i % array.mean.size();
      const double clip = contract.normalisation_clip;
      number = static_cast<float>(
          std::clamp((number - array.mean[k]) / array.deviation[k], -clip, clip));
      std::memcpy(place, &number, sizeof number);
    }
  }
}

std::string contract_text(const PolicyContract& contract) {
  return json_of(contract).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void check_contract(const PolicyContract& contract, const std::filesystem::path& file) {
  constexpr std::streamsize kMost = 16 << 20; // bytes
  std::ifstream in(file, std::ios::binary);
  if (!in)
    throw std::invalid_argument(file.string()
                                + ": cannot be read; name a contract.json of "
                                  "`troupe export`");
  std::string text(static_cast<std::size_t>(kMost) + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (static_cast<std::streamsize>(text.size()) > kMost)
    throw std::invalid_argument(file.string() + ": is larger than 16 MiB, so it is not a contract");
  constexpr int kDeepest = 16;
  if (env::is_deeper_than(text, kDeepest))
    throw std::invalid_argument(file.string() + ": is nested more than " + std::to_string(kDeepest)
                                + " deep, so it is not a contract");
  const Json theirs = Json::parse(text, nullptr, false);
  if (!theirs.is_object() || theirs.value("format", Json()) != kFormat)
    throw std::invalid_argument(file.string() + ": is not a contract with \"format\": \"" + kFormat
                                + "\"; name a contract.json of `troupe export`");
  if (const std::string found = difference(json_of(contract), theirs); !found.empty())
    throw std::invalid_argument(file.string() + " and the policy differ in " + found
                                + "; export a policy that was trained for this contract, or "
                                  "change what uses it");
}

std::string contract_difference(const PolicyContract& contract, const PolicyContract& other) {
  return difference(json_of(contract), json_of(other));
}

} // namespace troupe::experiments

#include <cmath>
#include <limits>
#include <set>

#include "env/remote/protocol.hpp"

namespace troupe::env::remote {

namespace {

message::ElementType encode_type(ElementType type) {
  switch (type) {
  case ElementType::uint8:
    return message::UINT8;
  case ElementType::float32:
    return message::FLOAT32;
  case ElementType::float64:
    return message::FLOAT64;
  case ElementType::int64:
    return message::INT64;
  }
  throw std::invalid_argument("element type " + std::to_string(static_cast<int>(type))
                              + " is unknown");
}

ElementType decode_type(const message::Array& array) {
  switch (array.type()) {
  case message::UINT8:
    return ElementType::uint8;
  case message::FLOAT32:
    return ElementType::float32;
  case message::FLOAT64:
    return ElementType::float64;
  case message::INT64:
    return ElementType::int64;
  default:
    throw ProtocolError("observation '" + printable(array.name(), kMaxName) + "' has element type "
                        + std::to_string(static_cast<int>(array.type()))
                        + "; it must be 1 (uint8), 2 (float32), 3 (float64) or 4 (int64)");
  }
}

std::string quoted(const std::string& name) {
  std::string out = "'";
  out += printable(name, kMaxName);
  out += '\'';
  return out;
}

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName && printable(name, kMaxName) == name;
}

void require(bool good, const std::string& complaint) {
  if (!good)
    throw ProtocolError("its spec: " + complaint);
}

/// Returns the bytes of the array. Throws before a product can overflow.
std::size_t checked_bytes(const ArraySpec& array, std::size_t max_bytes) {
  require(is_name(array.name),
          quoted(array.name)
              + " is not a valid name of an observation (1 to 200 bytes, printable)");
  const std::string what = "observation '" + array.name + "'";
  require(array.shape.size() <= kMaxDimensions, what + " has " + std::to_string(array.shape.size())
                                                    + " dimensions; at most 8 are allowed");
  std::size_t bytes = element_bytes(array.type);
  for (const std::int64_t n : array.shape) {
    require(n >= 1, what + " has a dimension of " + std::to_string(n) + "; it must be 1 or more");
    require(static_cast<std::uint64_t>(n) <= max_bytes / bytes,
            what + " has more than " + std::to_string(max_bytes)
                + " bytes; raise max_message_bytes if that is intended");
    bytes *= static_cast<std::size_t>(n);
  }
  return bytes;
}

} // namespace

std::size_t row_bytes(const EnvironmentSpec& spec) {
  return (spec.observation_bytes() + 7) / 8 * 8;
}

void check_spec(const EnvironmentSpec& spec, std::size_t max_bytes) {
  require(is_name(spec.name),
          quoted(spec.name) + " is not a valid name of an environment (1 to 200 bytes, printable)");
  require(!spec.observations.empty() && spec.observations.size() <= kMaxArrays,
          std::to_string(spec.observations.size()) + " observations; 1 to 64 are allowed");
  std::set<std::string> names;
  std::size_t bytes = 0;
  for (const ArraySpec& array : spec.observations) {
    bytes += (checked_bytes(array, max_bytes) + 7) / 8 * 8;
    require(names.insert(array.name).second,
            "two observations are called '" + array.name + "'; names must differ");
    require(bytes <= max_bytes, "an observation has more than " + std::to_string(max_bytes)
                                    + " bytes; raise max_message_bytes if that is intended");
  }
  require(problem_of(spec.action).empty(), problem_of(spec.action));
  require(spec.action.size() >= 1 && spec.action.size() <= kMaxActions,
          std::to_string(spec.action.size()) + " action dimensions; 1 to 4096 are allowed");
  require(spec.episode_steps >= 0,
          "episode_steps is " + std::to_string(spec.episode_steps) + "; it must be 0 or more");
  require(spec.action_repeat >= 1 && spec.action_repeat <= 1'000'000,
          "action_repeat is " + std::to_string(spec.action_repeat) + "; it must be 1 to 1000000");
  require(spec.frame_stack >= 1 && spec.frame_stack <= 1024,
          "frame_stack is " + std::to_string(spec.frame_stack) + "; it must be 1 to 1024");
  require(std::isfinite(spec.control_timestep_seconds) && spec.control_timestep_seconds >= 0,
          "control_timestep_seconds is " + std::to_string(spec.control_timestep_seconds)
              + "; it must be finite and not negative");
}

message::Spec encode_spec(const EnvironmentSpec& spec) {
  message::Spec out;
  out.set_name(spec.name);
  for (const ArraySpec& array : spec.observations) {
    auto& one = *out.add_observations();
    one.set_name(array.name);
    one.set_type(encode_type(array.type));
    one.mutable_shape()->Assign(array.shape.begin(), array.shape.end());
  }
  out.mutable_action_minimum()->Assign(spec.action.minimum.begin(), spec.action.minimum.end());
  out.mutable_action_maximum()->Assign(spec.action.maximum.begin(), spec.action.maximum.end());
  out.mutable_action_choices()->Assign(spec.action.choices.begin(), spec.action.choices.end());
  out.set_episode_steps(spec.episode_steps);
  out.set_action_repeat(spec.action_repeat);
  out.set_frame_stack(spec.frame_stack);
  out.set_control_timestep_seconds(spec.control_timestep_seconds);
  return out;
}

EnvironmentSpec decode_spec(const message::Spec& spec, std::size_t max_bytes) {
  EnvironmentSpec out;
  out.name = spec.name();
  for (const message::Array& array : spec.observations())
    out.observations.push_back({.name = array.name(),
                                .type = decode_type(array),
                                .shape = {array.shape().begin(), array.shape().end()}});
  out.action.minimum.assign(spec.action_minimum().begin(), spec.action_minimum().end());
  out.action.maximum.assign(spec.action_maximum().begin(), spec.action_maximum().end());
  out.action.choices.assign(spec.action_choices().begin(), spec.action_choices().end());
  out.episode_steps = spec.episode_steps();
  out.action_repeat = spec.action_repeat();
  if (spec.frame_stack() < 1 || spec.frame_stack() > std::numeric_limits<int>::max())
    throw ProtocolError("its spec: frame_stack is " + std::to_string(spec.frame_stack())
                        + "; it must be 1 to 1024");
  out.frame_stack = static_cast<int>(spec.frame_stack());
  out.control_timestep_seconds = spec.control_timestep_seconds();
  check_spec(out, max_bytes);
  return out;
}

std::string difference(const EnvironmentSpec& before, const EnvironmentSpec& now) {
  const auto changed = [](const std::string& what, const auto& a, const auto& b) {
    return what + " was " + std::to_string(a) + " and is " + std::to_string(b);
  };
  if (before.name != now.name)
    return "the environment was '" + before.name + "' and is '" + now.name + "'";
  if (before.observations.size() != now.observations.size())
    return changed("the number of observations", before.observations.size(),
                   now.observations.size());
  for (std::size_t i = 0; i < before.observations.size(); ++i)
    if (!(before.observations[i] == now.observations[i]))
      return "observation '" + before.observations[i].name
             + "' has a different name, type or shape";
  if (!(before.action == now.action))
    return "the bounds or choices of the action have changed";
  if (before.episode_steps != now.episode_steps)
    return changed("episode_steps", before.episode_steps, now.episode_steps);
  if (before.action_repeat != now.action_repeat)
    return changed("action_repeat", before.action_repeat, now.action_repeat);
  if (before.frame_stack != now.frame_stack)
    return changed("frame_stack", before.frame_stack, now.frame_stack);
  if (before.control_timestep_seconds != now.control_timestep_seconds)
    return changed("control_timestep_seconds", before.control_timestep_seconds,
                   now.control_timestep_seconds);
  return "";
}

} // namespace troupe::env::remote

#include "learner/data/formats/minari.hpp"

#include <cmath>
#include <fstream>
#include <map>
#include <regex>
#include <stdexcept>
#include <vector>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "env/text/number_in.hpp"
#include "learner/data/formats/array_file.hpp"
#include "learner/data/formats/hdf5_writer.hpp"
#include "learner/data/formats/minari_spaces.hpp"
#include "learner/data/pictures/data_error.hpp"
#include "replay/recordings/recording.hpp"

namespace troupe::learner::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kMetadata = "metadata.json";
constexpr const char* kArrays = "main_data.hdf5";

Json read_json(const fs::path& path) {
  std::ifstream in(path);
  if (!in)
    throw DataError(path.string()
                    + " cannot be read; name a folder that the package minari wrote "
                      "with data_format=\"hdf5\"");
  try {
    return Json::parse(in);
  } catch (const Json::exception& error) {
    throw DataError(path.string() + " is no JSON: " + error.what());
  }
}

/// The arrays of the file by name.
class Arrays {
public:
  explicit Arrays(const fs::path& path) : path_(path), file_(open_hdf5_arrays(path.string())) {
    for (std::size_t i = 0; i < file_->arrays().size(); ++i)
      places_[file_->arrays()[i].name] = i;
  }

  bool contains(const std::string& name) const { return places_.contains(name); }
  at::Tensor read(const std::string& name) const {
    const auto found = places_.find(name);
    if (found == places_.end())
      throw DataError(path_.string() + " has no array \"" + name + "\"");
    const FoundArray& about = file_->arrays()[found->second];
    at::Tensor out = at::empty(about.shape, about.type);
    if (out.numel() > 0)
      file_->read(found->second, 0, about.shape[0], out.mutable_data_ptr());
    return out;
  }

private:
  fs::path path_;
  std::unique_ptr<const ArrayFile> file_;
  std::map<std::string, std::size_t> places_;
};

/// Reads an array as [rows, elements] of one type, and checks its number of rows.
at::Tensor column(const Arrays& arrays, const std::string& name, std::int64_t rows,
                  std::int64_t elements, at::ScalarType type) {
  const at::Tensor read = arrays.read(name);
  if (read.size(0) != rows || read.numel() != rows * elements)
    throw DataError("array \"" + name + "\" has " + std::to_string(read.size(0)) + " rows of "
                    + std::to_string(read.size(0) == 0 ? 0 : read.numel() / read.size(0))
                    + " numbers; it must have " + std::to_string(rows) + " of "
                    + std::to_string(elements));
  return read.to(type).view({rows, elements});
}

replay::Episode episode_of(const Arrays& arrays, const std::string& group, const Seen& seen,
                           const Actions& actions, const replay::RecordingSpec& spec) {
  const at::Tensor reward = arrays.read(group + "rewards").to(at::kFloat).flatten();
  const std::int64_t steps = reward.size(0);
  const auto size = static_cast<std::int64_t>(actions.choices.size());
  const at::Tensor taken = column(arrays, group + "actions", steps, size, at::kDouble);
  const at::Tensor ended = column(arrays, group + "terminations", steps, 1, at::kByte);
  const bool picture = spec.frame.type == env::ElementType::uint8;
  at::Tensor frames =
      column(arrays, group + seen.path, steps + 1, static_cast<std::int64_t>(spec.frame.elements()),
             picture ? at::kByte : at::kFloat);
  if (picture) {
    const auto& shape = spec.frame.shape;
    frames = frames.view({steps + 1, shape[1], shape[2], shape[0]}).permute({0, 3, 1, 2});
  }
  frames = frames.contiguous();
  const auto bytes = spec.frame.bytes();
  const auto* first = static_cast<const std::byte*>(frames.const_data_ptr());
  replay::Episode episode(spec);
  episode.begin({first, bytes});
  std::vector<float> action(actions.choices.size());
  for (std::int64_t i = 0; i < steps; ++i) {
    for (std::size_t k = 0; k < action.size(); ++k)
      action[k] =
          actions.stored(taken.const_data_ptr<double>()[i * size + static_cast<long>(k)], k);
    episode.append(action, reward.const_data_ptr<float>()[i],
                   ended.const_data_ptr<std::uint8_t>()[i] != 0 ? 0 : 1,
                   {first + static_cast<std::size_t>(i + 1) * bytes, bytes});
  }
  return episode;
}

std::string environment_of(const Json& metadata) {
  if (!metadata.contains("env_spec") || !metadata.at("env_spec").is_string())
    return "";
  const Json spec = Json::parse(metadata.at("env_spec").get<std::string>(), nullptr, false);
  return spec.is_object() ? spec.value("id", "") : "";
}

/// Formats a Box as the minari package does. Its bounds may be infinite.
std::string box(const std::string& type, const Json& shape, const std::string& low,
                const std::string& high) {
  return R"({"type": "Box", "dtype": ")" + type + R"(", "shape": )" + shape.dump() + R"(, "low": )"
         + low + R"(, "high": )" + high + "}";
}

std::string repeated(const std::string& value, const std::vector<std::int64_t>& shape,
                     std::size_t from = 0) {
  if (from == shape.size())
    return value;
  std::string out;
  for (std::int64_t i = 0; i < shape[from]; ++i)
    out += (i == 0 ? "" : ", ") + repeated(value, shape, from + 1);
  return "[" + out + "]";
}

/// Formats a bound of a Box.
std::string bound(double number) {
  return std::isfinite(number) ? Json(number).dump() : number < 0 ? "-Infinity" : "Infinity";
}

/// The limit to which the environment clipped the agent's numbers. 1: none, or unknown.
double action_limit(const replay::RecordingSpec& spec, const fs::path& recording) {
  const auto found = spec.about.find("action_clip");
  if (found == spec.about.end())
    return 1;
  const auto limit = env::number_in<double>(found->second);
  if (!limit || !(*limit > 0 && *limit <= 1))
    throw DataError(recording.string() + ": its action_clip is \"" + found->second
                    + "\"; it must be above 0 and at most 1");
  return *limit;
}

} // namespace

std::int64_t import_minari(const fs::path& folder, const fs::path& out,
                           const std::string& observation) {
  const fs::path data = fs::exists(folder / kMetadata) ? folder : folder / "data";
  const Json metadata = read_json(data / kMetadata);
  try {
    if (metadata.value("data_format", "hdf5") != "hdf5")
      throw DataError(data.string() + " is stored as " + metadata.at("data_format").dump()
                      + "; write it with data_format=\"hdf5\"");
    const Seen seen = seen_of(space_of(metadata, "observation_space", data), observation);
    const Actions actions = actions_of(space_of(metadata, "action_space", data));
    replay::RecordingSpec spec{
        .frame = frame_of(seen, metadata.value("jpeg_encoding", true)),
        .action_size = static_cast<int>(actions.choices.size()),
        .action_minimum = actions.low,
        .action_maximum = actions.high,
        .about = {{"imported", metadata.value("dataset_id", folder.filename().string())},
                  {"task", environment_of(metadata)},
                  {"agent", metadata.value("algorithm_name", "")}}};
    if (std::ranges::any_of(actions.choices, [](std::int64_t n) { return n > 0; }))
      spec.action_choices = actions.choices;
    const Arrays arrays(data / kArrays);
    replay::RecordingWriter writer(out, spec);
    for (std::int64_t i = 0; arrays.contains("episode_" + std::to_string(i) + "/rewards"); ++i) {
      const replay::Episode episode =
          episode_of(arrays, "episode_" + std::to_string(i) + "/", seen, actions, spec);
      if (episode.steps() > 0)
        writer.add(episode);
    }
    if (writer.episodes() == 0)
      throw DataError((data / kArrays).string() + " has no episode with a step");
    writer.commit();
    return writer.episodes();
  } catch (const Json::exception& error) {
    throw DataError((data / kMetadata).string() + " is not what minari writes: " + error.what());
  } catch (const c10::Error& error) {
    throw DataError((data / kArrays).string() + ": " + error.what_without_backtrace());
  }
}

void export_minari(const fs::path& recording, const fs::path& folder, const std::string& name) {
  static const std::regex rule(R"(([-_\w]+/)*[-_\w]+?-v\d+)");
  if (!std::regex_match(name, rule))
    throw std::invalid_argument("--name " + name
                                + ": a Minari data set has a name like \"half_cheetah/medium-v0\"");
  const replay::Recording from(recording);
  const replay::RecordingSpec& spec = from.spec();
  if (!spec.vectors.empty())
    throw std::invalid_argument(recording.string() + " has '" + spec.vectors[0].name + "' besides '"
                                + spec.frame.name
                                + "', which is not exported; record one array (environment."
                                  "observations), or train from the recording itself");
  const bool picture = spec.frame.is_picture();
  const bool chooses = !spec.action_choices.empty();
  if (chooses && std::ranges::any_of(spec.action_choices, [](std::int64_t n) { return n == 0; }))
    throw std::invalid_argument(
        recording.string()
        + " has actions of both numbers and choices, for which Minari has no "
          "array; export one with only one kind");
  const std::vector<std::int64_t> numbers_of_action{spec.action_size};
  const double limit = action_limit(spec, recording);
  const bool known = !spec.action_minimum.empty() && !chooses;
  const auto low = [&](std::int64_t k) {
    return known ? spec.action_minimum[static_cast<std::size_t>(k)] : -1.0;
  };
  const auto high = [&](std::int64_t k) {
    return known ? spec.action_maximum[static_cast<std::size_t>(k)] : 1.0;
  };
  std::string action_space;
  if (!chooses) {
    std::string lows, highs;
    for (int k = 0; k < spec.action_size; ++k) {
      lows += (k == 0 ? "" : ", ") + bound(low(k));
      highs += (k == 0 ? "" : ", ") + bound(high(k));
    }
    action_space = box("float32", numbers_of_action, "[" + lows + "]", "[" + highs + "]");
  } else if (spec.action_size == 1) {
    action_space =
        Json{{"type", "Discrete"}, {"dtype", "int64"}, {"start", 0}, {"n", spec.action_choices[0]}}
            .dump();
  } else {
    action_space = Json{{"type", "MultiDiscrete"},
                        {"dtype", "int64"},
                        {"nvec", spec.action_choices},
                        {"start", std::vector<int>(spec.action_choices.size())}}
                       .dump();
  }
  std::vector<std::int64_t> shape = spec.frame.shape;
  if (picture)
    shape = {shape[1], shape[2], shape[0]};
  const std::string observation_space =
      picture ? box("uint8", shape, repeated("0", shape), repeated("255", shape))
              : box("float32", shape, repeated("-Infinity", shape), repeated("Infinity", shape));
  fs::create_directories(folder);
  if (fs::exists(folder / "data"))
    throw std::invalid_argument((folder / "data").string() + " exists; name a new folder");
  fs::create_directory(folder / "data");
  const auto file = make_hdf5_writer(folder / "data" / kArrays);
  const auto column_of = [&](const replay::Episode& episode, replay::TransitionColumn column,
                             std::int64_t begin, at::ScalarType type) {
    const auto bytes = episode.column(0, column).size();
    at::Tensor out = at::empty(
        {episode.rows() - begin, static_cast<std::int64_t>(bytes / c10::elementSize(type))}, type);
    auto* to = static_cast<std::byte*>(out.mutable_data_ptr());
    for (std::int64_t row = begin; row < episode.rows(); ++row, to += bytes)
      std::ranges::copy(episode.column(row, column), to);
    return out;
  };
  for (std::size_t i = 0; i < from.episodes().size(); ++i) {
    const replay::Episode episode = from.read(i);
    const std::string group = "episode_" + std::to_string(i);
    file->group(group);
    file->attribute(group, "id", static_cast<std::int64_t>(i));
    file->attribute(group, "total_steps", episode.steps());
    at::Tensor frames = column_of(episode, replay::kFrame, 0, picture ? at::kByte : at::kFloat);
    if (picture)
      frames = frames.view({episode.rows(), shape[2], shape[0], shape[1]}).permute({0, 2, 3, 1});
    file->add(group + "/observations", frames);
    at::Tensor action = column_of(episode, replay::kAction, 1, at::kFloat);
    if (chooses) {
      action = action.to(at::kLong);
      action = spec.action_size == 1 ? action.flatten() : action;
    }
    for (std::int64_t k = 0; !chooses && k < spec.action_size; ++k) {
      const at::Tensor numbers = action.select(1, k).clamp_(-limit, limit);
      if (std::isfinite(low(k)) && std::isfinite(high(k))) // others are played as they are
        numbers.add_(1).mul_((high(k) - low(k)) / 2).add_(low(k));
    }
    file->add(group + "/actions", action);
    file->add(group + "/rewards",
              column_of(episode, replay::kReward, 1, at::kFloat).flatten().to(at::kDouble));
    at::Tensor terminations = at::zeros({episode.steps()}, at::kBool);
    at::Tensor truncations = at::zeros({episode.steps()}, at::kBool);
    (episode.terminated() ? terminations : truncations)[episode.steps() - 1] = true;
    file->add(group + "/terminations", terminations);
    file->add(group + "/truncations", truncations);
  }
  file->flush();
  const auto about = [&](const char* key) {
    const auto found = spec.about.find(key);
    return found == spec.about.end() ? std::string() : found->second;
  };
  const Json metadata{
      {"total_episodes", from.episodes().size()},
      {"total_steps", from.steps()},
      {"data_format", "hdf5"},
      {"jpeg_encoding", false},
      {"observation_space", observation_space},
      {"action_space", action_space},
      {"dataset_id", name},
      {"algorithm_name", about("agent")},
      {"description", "recorded by troupe: task " + about("task") + ", policy " + about("policy")},
      {"minari_version", "0.5.4"}};
  std::ofstream to(folder / "data" / kMetadata);
  to << metadata.dump() << '\n';
  if (!to.flush())
    throw DataError((folder / "data" / kMetadata).string() + " cannot be written");
}

} // namespace troupe::learner::data

#include "experiments/run_folder/run_folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <nlohmann/json.hpp>

#include "env/text/joined.hpp"
#include "env/text/number_in.hpp"
#include "env/whole_file.hpp"
#include "experiments/run_folder/folder_lock.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;

/// Creates the first of base, base-2, base-3, … that does not exist. mkdir is atomic, so two
/// processes never get the same folder.
fs::path make_new_folder(const fs::path& base) {
  for (int i = 1; i < 10'000; ++i) {
    const fs::path path = i == 1 ? base : fs::path(base.string() + "-" + std::to_string(i));
    if (::mkdir(path.c_str(), 0755) == 0) {
      return path;
    }
    if (errno != EEXIST) {
      fail_at(path, "cannot be made", errno);
    }
  }
  throw std::runtime_error(base.string() + ": 10,000 runs began in this second");
}

} // namespace

void write_text(const fs::path& path, const std::string& text) {
  try {
    env::WholeFileWriter file(path);
    file.write(text.data(), text.size());
    file.commit();
  } catch (const std::system_error& error) {
    throw std::runtime_error(error.what() + way_out(error.code().value()));
  }
}

RunFolder RunFolder::create(const fs::path& runs, const std::string& name, UtcTime now,
                            const std::string& config_text) {
  std::error_code error;
  const fs::path parent = runs / name;
  fs::create_directories(parent, error);
  if (error) {
    fail_at(parent, "cannot be made", error.value());
  }
  const fs::path path = make_new_folder(parent / folder_time(now));
  try {
    RunFolder folder(fs::canonical(path), FolderLock(path, "this run"));
    for (const char* part : {"checkpoints", "videos"}) {
      fs::create_directory(path / part, error);
      if (error) {
        fail_at(path / part, "cannot be made", error.value());
      }
    }
    write_text(path / "config.textproto", config_text);
    return folder;
  } catch (...) {
    fs::remove_all(path, error); // this process has just created it
    throw;
  }
}

std::vector<fs::path> runs_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (fs::is_regular_file(entry.path() / "config.textproto", error)) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void check_is_run(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path / "config.textproto", error)) {
    return;
  }
  if (!fs::exists(path, error)) {
    throw std::invalid_argument(path.string()
                                + ": there is no such run; name a folder like runs/<name>/<time>");
  }
  const auto inside = runs_in(path);
  throw std::invalid_argument(path.string() + ": is not a run's folder: it has no config.textproto"
                              + (inside.empty()
                                     ? "; name a folder like runs/<name>/<time>"
                                     : "; did you mean " + inside.back().string() + "?"));
}

RunFolder RunFolder::open(const fs::path& path) {
  check_is_run(path);
  return {fs::canonical(path), FolderLock(path, "this run")};
}

fs::path name_for_former_config(const fs::path& run) {
  for (int i = 1;; ++i) {
    const fs::path path = run / ("config-" + std::to_string(i) + ".textproto");
    if (!fs::exists(path)) {
      return path;
    }
  }
}

std::vector<CheckpointFolder> complete_checkpoints(const fs::path& run) {
  std::vector<CheckpointFolder> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", error)) {
    const std::string name = entry.path().filename().string();
    const auto updates = env::number_in<std::int64_t>(name);
    if (updates && *updates >= 0 && fs::is_regular_file(entry.path() / "manifest.json", error)) {
      found.push_back({.updates = *updates, .path = entry.path()});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.updates < b.updates; });
  return found;
}

CheckpointFolder find_checkpoint(const fs::path& run, std::optional<std::int64_t> updates) {
  const auto found = complete_checkpoints(run);
  if (found.empty()) {
    throw std::invalid_argument(
        run.string()
        + ": has no complete checkpoint (a folder with a manifest.json below "
          "checkpoints/); train again");
  }
  if (!updates) {
    return found.back();
  }
  for (const auto& checkpoint : found) {
    if (checkpoint.updates == *updates) {
      return checkpoint;
    }
  }
  throw std::invalid_argument(run.string() + ": has no complete checkpoint "
                              + std::to_string(*updates) + "; there are "
                              + env::joined(found, ", ", &CheckpointFolder::updates));
}

CheckpointFolder find_best_checkpoint(const fs::path& run) {
  find_checkpoint(run); // throws if there is none
  std::optional<CheckpointFolder> best;
  for (CheckpointFolder& checkpoint : complete_checkpoints(run)) {
    std::ifstream in(checkpoint.path / "manifest.json");
    const auto manifest = nlohmann::json::parse(in, nullptr, false);
    const auto state = manifest.is_object() ? manifest.value("state", nlohmann::json::object())
                                            : nlohmann::json::object();
    if (!state.is_object() || !state.contains("evaluated") || state["evaluated"] != true
        || !state.contains("evaluation_return") || !state["evaluation_return"].is_number()) {
      continue;
    }
    checkpoint.evaluation_return = state["evaluation_return"].get<double>();
    if (!best || *checkpoint.evaluation_return >= *best->evaluation_return) {
      best = checkpoint;
    }
  }
  if (!best) {
    throw std::invalid_argument(run.string()
                                + ": has no checkpoint with an evaluation; train with "
                                  "checkpoint.keep_best, or leave --best out");
  }
  return *best;
}

CheckpointFolder find_sound_checkpoint(const fs::path& run,
                                       const std::function<void(const fs::path&)>& check,
                                       const std::function<void(const std::string&)>& damaged) {
  find_checkpoint(run); // throws if there is none
  std::vector<std::string> words;
  for (auto found = complete_checkpoints(run); !found.empty(); found.pop_back()) {
    try {
      check(found.back().path);
    } catch (const std::exception& e) {
      words.emplace_back(e.what());
      continue;
    }
    std::for_each(words.begin(), words.end(), damaged);
    return found.back();
  }
  std::string all = run.string() + ": has no sound checkpoint";
  for (const std::string& what : words) {
    all += "; " + what;
  }
  throw std::runtime_error(all);
}

std::filesystem::path newest_timeline(const std::filesystem::path& run) {
  std::filesystem::path newest;
  std::filesystem::file_time_type time = {};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(run / "timelines", error)) {
    const auto written = entry.last_write_time(error);
    if (!error && entry.path().extension() == ".json" && (newest.empty() || written > time)) {
      newest = entry.path();
      time = written;
    }
  }
  if (newest.empty()) {
    throw std::runtime_error(run.string() + ": has no timeline");
  }
  return newest;
}

} // namespace troupe::experiments

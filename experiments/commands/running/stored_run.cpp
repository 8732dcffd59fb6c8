#include "experiments/commands/running/stored_run.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <stdexcept>

#include "actors/roles/checkpoint.hpp"
#include "actors/roles/files.hpp"
#include "experiments/config/config.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "replay/objects/folder_copies.hpp"
#include "replay/objects/object_store.hpp"
#include "replay/objects/store_error.hpp"

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;
constexpr const char* kManifest = "manifest.json";
constexpr const char* kExperiment = "config.textproto";
constexpr const char* kRunFiles[] = {"origin.json", "metrics.csv", "metrics.jsonl", kExperiment};

/// The numbers of the complete checkpoints in the store, newest first.
std::set<std::int64_t, std::greater<>> stored_checkpoints(replay::ObjectStore& store,
                                                          const replay::ObjectAddress& run) {
  const auto folder = below(run, "checkpoints");
  std::set<std::int64_t, std::greater<>> numbers;
  for (const auto& object : store.list(folder)) {
    const std::string name = object.key.substr(folder.key.size() + 1);
    const auto slash = std::min(name.find('/'), name.size());
    const std::int64_t number = actors::number_of(name.substr(0, slash));
    if (number >= 0 && name.substr(slash) == std::string("/") + kManifest) {
      numbers.insert(number);
    }
  }
  return numbers;
}

[[noreturn]] void refuse_address(replay::ObjectStore& store, const replay::ObjectAddress& run) {
  std::string inside;
  for (const std::string& name : store.folders(run)) {
    inside = std::max(inside, name);
  }
  throw std::invalid_argument(
      text_of(run) + ": no run has a complete checkpoint there; "
      + (inside.empty() ? "name s3://bucket/prefix/NAME/TIME, where checkpoint.store was "
                          "s3://bucket/prefix"
                        : "did you mean " + text_of(below(run, inside)) + "?"));
}

/// Fetches the files beside the checkpoints to `fetched`, because the local ones must stay until
/// the checkpoint is there.
void fetch_files(replay::ObjectStore& store, const replay::ObjectAddress& run,
                 const fs::path& fetched) {
  fs::remove_all(fetched); // left by an interrupted fetch
  fs::create_directories(fetched);
  for (const char* name : kRunFiles) {
    try {
      store.get_file(below(run, name), fetched / name);
    } catch (const replay::StoreError& missing) {
      if (missing.status() != 404 || name == kExperiment) {
        throw;
      }
    }
  }
}

/// Replaces the files of an older checkpoint. The experiment, which makes the folder a run, is
/// last; a different one is kept.
void take_files(const fs::path& fetched, const fs::path& here) {
  if (fs::exists(here / kExperiment)) {
    const std::string former = read_config_file(here / kExperiment);
    if (former != read_config_file(fetched / kExperiment)) {
      write_text(name_for_former_config(here), former);
    }
  }
  for (const char* name : kRunFiles) {
    if (fs::exists(fetched / name)) {
      fs::rename(fetched / name, here / name);
    }
  }
  fs::remove_all(fetched);
}

/// Removes interrupted downloads of checkpoints that a newer checkpoint has replaced.
void remove_other_partials(const fs::path& checkpoints, const std::string& wanted) {
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") && name.ends_with(".partial") && name != "." + wanted + ".partial") {
      others.push_back(entry.path());
    }
  }
  for (const fs::path& other : others) {
    fs::remove_all(other);
  }
}

void tell(const std::string& line) {
  std::fprintf(stderr, "troupe: %s\n", line.c_str());
}

fs::path fetch_run(replay::ObjectStore& store, const replay::ObjectAddress& run,
                   const fs::path& runs) {
  const fs::path key = run.key;
  const auto numbers = stored_checkpoints(store, run);
  if (numbers.empty() || key.parent_path().empty()) {
    refuse_address(store, run);
  }
  const fs::path here = runs / key.parent_path().filename() / key.filename();
  const auto local = complete_checkpoints(here);
  const fs::path fetched = here / ".fetched";
  const bool has_newest =
      fs::exists(here / kExperiment) && !local.empty() && local.back().updates >= *numbers.begin();
  // An earlier fetch ended between the checkpoint and the files beside it.
  const bool lacks_files =
      has_newest && local.back().updates == *numbers.begin() && fs::exists(fetched);
  if (has_newest && !lacks_files) {
    tell(here.string() + " already has this run's newest checkpoint");
    return here;
  }
  fs::create_directories(here / "checkpoints");
  fs::create_directories(here / "videos");
  const FolderLock lock(here, "this run");
  fetch_files(store, run, fetched);
  if (lacks_files) {
    take_files(fetched, here);
    return here;
  }
  std::string damaged;
  for (const std::int64_t number : numbers) {
    const std::string name = "checkpoints/" + std::to_string(number);
    if (fs::exists(here / name / kManifest)) {
      break;
    }
    try {
      fs::remove_all(here / name); // incomplete
      remove_other_partials(here / "checkpoints", std::to_string(number));
      download_folder(store, below(run, name), here / name, kManifest, actors::verify_checkpoint);
      take_files(fetched, here);
      tell("fetched checkpoint " + std::to_string(number) + " of " + text_of(run) + " to "
           + here.string());
      return here;
    } catch (const replay::StoreError&) {
      throw;
    } catch (const std::runtime_error& damage) {
      damaged = damage.what();
      tell(text_of(below(run, name)) + ": " + damaged + "; trying the one before it");
    }
  }
  fs::remove_all(fetched);
  if (!fs::exists(here / kExperiment) || complete_checkpoints(here).empty()) {
    throw std::runtime_error(text_of(run) + ": has no sound checkpoint: " + damaged);
  }
  return here;
}

} // namespace

fs::path local_run(const std::string& run, const fs::path& runs) {
  if (!replay::is_object_address(run)) {
    return run;
  }
  const auto address = replay::parse_object_address(run, "RUN");
  replay::ObjectStore store(replay::store_options());
  return fetch_run(store, address, runs);
}

} // namespace troupe::experiments::commands

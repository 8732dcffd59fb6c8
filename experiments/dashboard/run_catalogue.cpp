#include "experiments/dashboard/run_catalogue.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe::experiments::dashboard {
namespace {

constexpr int kDeepest = 4; // depth in folders: sweep, part, name, time
constexpr std::size_t kMostRuns = 10'000;

/// Adds the ids of the runs in `folder`, whose own id is `prefix`.
void add_ids(const std::filesystem::path& folder, const std::string& prefix, int depth,
             std::vector<std::string>& ids) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (ids.size() >= kMostRuns || !entry.is_directory(error)) {
      continue;
    }
    const std::string id = prefix + entry.path().filename().string();
    if (std::filesystem::is_regular_file(entry.path() / "config.textproto", error)) {
      ids.push_back(id);
    } else if (depth < kDeepest) {
      add_ids(entry.path(), id + "/", depth + 1, ids);
    }
  }
}

} // namespace

RunCatalogue::RunCatalogue(const std::filesystem::path& runs) : folder_(runs) {
  std::error_code error;
  if (!std::filesystem::is_directory(runs, error)) {
    throw std::invalid_argument(
        runs.string()
        + ": is not a folder for runs; name the one that `troupe train --runs` wrote to");
  }
}

void RunCatalogue::look() {
  const auto now = std::chrono::steady_clock::now();
  if (looked_ != decltype(looked_)() && now - looked_ < std::chrono::seconds(1)) {
    return;
  }
  looked_ = now;
  std::vector<std::string> ids;
  add_ids(folder_, "", 1, ids);
  std::map<std::string, RunPtr> found;
  sorted_.clear();
  for (const std::string& id : ids) {
    const auto known = runs_.find(id);
    sorted_.push_back(known != runs_.end() ? known->second
                                           : std::make_shared<WatchedRun>(id, folder_ / id));
    found[id] = sorted_.back();
  }
  runs_ = std::move(found);
  std::sort(sorted_.begin(), sorted_.end(), [](const RunPtr& a, const RunPtr& b) {
    const auto one = a->folder().filename(), other = b->folder().filename();
    return one != other ? one > other : a->id() < b->id();
  });
}

std::vector<RunPtr> RunCatalogue::runs() {
  const std::lock_guard lock(mutex_);
  look();
  return sorted_;
}

RunPtr RunCatalogue::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  auto found = runs_.find(id);
  if (found == runs_.end()) {
    look();
    found = runs_.find(id);
  }
  if (found == runs_.end()) {
    throw std::invalid_argument("run " + id + ": there is no such run below " + folder_.string());
  }
  return found->second;
}

namespace {

/// Puts the run at the end of `recent`. Returns the run used least recently if there are now more
/// than `most`, otherwise null.
RunPtr note_use(const RunPtr& run, std::vector<RunPtr>& recent, std::size_t most) {
  std::erase(recent, run);
  recent.push_back(run);
  if (recent.size() <= most) {
    return nullptr;
  }
  RunPtr oldest = std::move(recent.front());
  recent.erase(recent.begin());
  return oldest;
}

} // namespace

void RunCatalogue::used(const RunPtr& run) {
  const std::lock_guard lock(mutex_);
  if (const RunPtr oldest = note_use(run, recent_, kMostLoaded)) {
    oldest->forget_metrics();
  }
}

void RunCatalogue::used_log(const RunPtr& run) {
  const std::lock_guard lock(mutex_);
  if (const RunPtr oldest = note_use(run, recent_logs_, kMostLogs)) {
    oldest->forget_log();
  }
}

} // namespace troupe::experiments::dashboard

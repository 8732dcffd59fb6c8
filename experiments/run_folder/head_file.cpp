#include "experiments/run_folder/head_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;
constexpr int kVersion = 1;
constexpr int kMostPort = 65535;
constexpr std::size_t kMostBytes = 1 << 16; // of head.json

fs::path head_file(const fs::path& run) {
  return run / "head.json";
}

std::string how_served() {
  return "runs of `troupe train`, `resume` and `launch` can be operated";
}

LiveRun live_run(const fs::path& run) {
  check_is_run(run);
  const auto head = read_head_file(run);
  const auto held = is_run_held(run);
  if (head && held.value_or(true)) {
    return {run, *head};
  }
  if (head) {
    throw std::invalid_argument(
        run.string() + ": its head (process " + std::to_string(head->process) + " on " + head->host
        + ", since " + head->started + ") was killed; `troupe resume` continues the run");
  }
  if (held.value_or(false)) {
    throw std::invalid_argument(run.string()
                                + ": a process works on this run, but cannot be operated: it "
                                  "starts, ends, or is part of another program ("
                                + how_served() + "); SIGTERM stops it");
  }
  throw std::invalid_argument(
      run.string() + ": no process works on this run; `troupe resume` continues an unfinished run");
}

std::optional<LiveRun> newest_live_run(const fs::path& runs) {
  std::vector<LiveRun> found;
  for (const fs::path& run : runs_below(runs)) {
    try {
      if (const auto head = read_head_file(run)) {
        found.push_back({run, *head});
      }
    } catch (const std::runtime_error&) { // the run has no reachable head
    }
  }
  std::sort(found.begin(), found.end(), [](const LiveRun& a, const LiveRun& b) {
    return a.head.started != b.head.started ? a.head.started > b.head.started : a.run > b.run;
  });
  for (LiveRun& one : found) {
    if (is_run_held(one.run).value_or(true)) {
      return std::move(one);
    }
  }
  return std::nullopt;
}

} // namespace

std::vector<fs::path> runs_below(const fs::path& runs) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& name : fs::directory_iterator(runs, error)) {
    const auto of_name = runs_in(name.path());
    found.insert(found.end(), of_name.begin(), of_name.end());
  }
  return found;
}

HeadFile::HeadFile(const fs::path& run, const HeadPlace& place) : path_(head_file(run)) {
  const nlohmann::ordered_json text = {{"version", kVersion},      {"host", place.host},
                                       {"address", place.address}, {"port", place.port},
                                       {"process", place.process}, {"keys", place.keys},
                                       {"started", place.started}};
  text_ = text.dump(2) + "\n";
}

void HeadFile::write() {
  if (!text_.empty()) {
    write_text(path_, text_);
    text_.clear();
  }
}

HeadFile::~HeadFile() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

std::optional<HeadPlace> read_head_file(const fs::path& run) {
  const fs::path path = head_file(run);
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return std::nullopt;
  }
  std::string text(kMostBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  try {
    const auto told = nlohmann::json::parse(text);
    HeadPlace place{.host = told.at("host"),
                    .address = told.at("address"),
                    .port = told.at("port"),
                    .process = told.at("process"),
                    .keys = told.at("keys"),
                    .started = told.at("started")};
    if (told.at("version") != kVersion || place.port < 1 || place.port > kMostPort
        || place.address.empty()) {
      throw std::invalid_argument("version, port or address");
    }
    return place;
  } catch (const std::exception& e) {
    throw std::runtime_error(path.string() + ": does not say where a head is (" + e.what()
                             + "); if the run is over, remove it");
  }
}

std::optional<bool> is_run_held(const fs::path& run) {
  const int handle = ::open((run / "lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) {
    return errno == ENOENT ? std::optional(false) : std::nullopt;
  }
  struct flock held {};
  held.l_type = F_RDLCK;
  const bool known = ::fcntl(handle, F_OFD_GETLK, &held) == 0;
  ::close(handle);
  return known ? std::optional(held.l_type != F_UNLCK) : std::nullopt;
}

LiveRun find_live_run(const fs::path& run, const fs::path& runs) {
  if (!run.empty()) {
    return live_run(run);
  }
  if (auto found = newest_live_run(runs)) {
    return *found;
  }
  throw std::invalid_argument(runs.string() + ": there is no live run below it (" + how_served()
                              + "); name the run's folder, or the folder for runs "
                                "with --runs");
}

fs::path find_run_with_logs(const fs::path& run, const fs::path& runs) {
  if (run.empty()) {
    if (auto found = newest_live_run(runs)) {
      return found->run;
    }
  }
  return find_run(run, runs);
}

fs::path find_run(const fs::path& run, const fs::path& runs) {
  if (!run.empty()) {
    check_is_run(run);
    return run;
  }
  const auto all = runs_below(runs);
  const auto time = [](const fs::path& path) { // the runs of a sweep are not named after a time
    const std::string name = path.filename();
    return std::isdigit(static_cast<unsigned char>(name.front())) != 0 ? name : "";
  };
  const auto newest = std::max_element(
      all.begin(), all.end(), [&](const auto& a, const auto& b) { return time(a) < time(b); });
  if (newest == all.end()) {
    throw std::invalid_argument(runs.string()
                                + ": there is no run below it; name the run's "
                                  "folder, or the folder for runs with --runs");
  }
  return *newest;
}

} // namespace troupe::experiments

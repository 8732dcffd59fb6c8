#include "experiments/commands/training/sweeper.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>

#include "experiments/config/config.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/run_folder/head_file.hpp"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;
using Kind = RunState::Kind;

constexpr int kLongestPoll = 60'000; // milliseconds
constexpr int kHeldPoll = 200;       // milliseconds, while another process works on a waiting run

} // namespace

Sweeper::Sweeper(SweeperOptions options, std::vector<SweepRun> runs)
    : options_(std::move(options)), runs_(std::move(runs)), failures_(runs_.size()) {
  for (const SweepRun& run : runs_) {
    states_.push_back(find_state(options_.folder / run.name, run));
  }
}

bool Sweeper::run() {
  write_results();
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (states_[i].kind != Kind::done) {
      waiting_.push_back(i);
    }
  }
  try {
    return run_all();
  } catch (...) {
    if (!stopped_ && !running_.empty()) {
      stop();
    }
    while (!running_.empty() && wait()) { // until the runs have written their checkpoints
    }
    throw;
  }
}

bool Sweeper::run_all() {
  while (true) {
    for (std::size_t left = waiting_.size(); left > 0 && may_start(); --left) {
      const std::size_t next = waiting_.front();
      waiting_.pop_front();
      if (is_held(next)) {
        waiting_.push_back(next);
      } else {
        start(next);
      }
    }
    if (running_.empty() && !may_start()) {
      if (!unwritten_.empty()) {
        write_results();
      }
      return true;
    }
    const auto ended = wait();
    if (!ended) {
      running_.clear(); // kills the running processes
      return false;
    }
    for (const Running& one : *ended) {
      collect(one);
    }
  }
}

std::string Sweeper::failure() const {
  std::size_t count = 0;
  std::string first;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (states_[i].kind == Kind::failed) {
      first = count++ == 0 ? runs_[i].name + ": " + states_[i].failure : first;
    }
  }
  return count == 0 ? ""
                    : std::to_string(count) + " of " + std::to_string(runs_.size())
                          + " runs failed; " + first;
}

void Sweeper::say(std::size_t i, const std::string& what) const {
  const auto done = std::count_if(states_.begin(), states_.end(),
                                  [](const RunState& state) { return state.kind == Kind::done; });
  std::fprintf(options_.screen, "[%d/%d] %s %s\n", static_cast<int>(done),
               static_cast<int>(runs_.size()), runs_[i].name.c_str(), what.c_str());
  std::fflush(options_.screen);
}

bool Sweeper::may_start() const {
  return !stopped_ && !waiting_.empty()
         && running_.size() < static_cast<std::size_t>(options_.jobs);
}

/// Whether another process works on the run, such as one whose sweeper was killed and that is still
/// writing its last checkpoint.
bool Sweeper::is_held(std::size_t i) {
  fs::path& folder = states_[i].folder;
  folder = latest_run(part(i) / runs_[i].experiment.name());
  if (folder.empty() || !is_run_held(folder).value_or(false)) {
    return false;
  }
  if (held_.insert(i).second) {
    say(i, "waits for the process that still works on " + folder.string());
  }
  return true;
}

void Sweeper::start(std::size_t i) {
  RunState& state = states_[i];
  const bool goes_on = !state.folder.empty() && !complete_checkpoints(state.folder).empty();
  std::vector<std::string> words;
  if (goes_on) {
    words = {"resume", state.folder.string()};
  } else {
    words = {"train", runs_[i].file.string(), "--runs", part(i).string()};
    for (const std::string& assignment : runs_[i].overrides) {
      words.insert(words.end(), {"--set", assignment});
    }
  }
  words.insert(words.end(), {"--json", "--quiet"});
  if (options_.processes) {
    words.emplace_back("--processes");
  }
  try {
    fs::create_directories(part(i));
    const fs::path errors = part(i) / "errors.txt";
    std::error_code none_yet;
    const auto size = fs::file_size(errors, none_yet);
    running_.push_back({i, none_yet ? 0 : size,
                        std::make_unique<RunProcess>(words, part(i) / "result.partial", errors)});
  } catch (const std::exception& failure) { // such as a full disk, which the others survive
    note_failure(i, failure.what());
    try_to_write_results();
    return;
  }
  state.kind = Kind::begun;
  state.failure.clear();
  say(i, goes_on ? "continues" : "starts");
}

/// Waits until runs end or a signal arrives. Returns the runs that have ended; nothing at the
/// second signal.
std::optional<std::vector<Sweeper::Running>> Sweeper::wait() {
  std::vector<Running> ended;
  std::vector<pollfd> watched = {{signals_.descriptor(), POLLIN, 0}};
  for (const Running& running : running_) {
    watched.push_back({running.process->ended(), POLLIN, 0});
  }
  if (::poll(watched.data(), watched.size(), may_start() ? kHeldPoll : kLongestPoll) <= 0) {
    return ended;
  }
  if (watched[0].revents != 0 && signals_.next()) {
    if (stopped_) {
      return std::nullopt;
    }
    stop();
  }
  for (std::size_t k = running_.size(); k-- > 0;) {
    if (watched[k + 1].revents != 0) {
      ended.push_back(std::move(running_[k]));
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  return ended;
}

void Sweeper::stop() {
  stopped_ = true;
  std::fprintf(stderr,
               "\ntroupe: stopping after a checkpoint of each run; a second signal stops at "
               "once\n");
  for (const Running& running : running_) {
    running.process->send(SIGTERM);
  }
}

void Sweeper::collect(const Running& ended) {
  const std::size_t i = ended.run;
  const std::string how = ended.process->wait();
  RunState& state = states_[i];
  if (how.empty() && keep_result(i)) {
    char text[96];
    std::snprintf(text, sizeof text, "is done: %s %.5g after %.1f minutes of training",
                  headline(runs_[i].experiment).c_str(), state.value, state.training_seconds / 60);
    say(i, text);
  } else if (how.empty() || stopped_) { // some runs cannot write a checkpoint when they stop
    say(i, how.empty() ? "stopped" : "stopped: " + how);
  } else {
    const std::string words = last_line(part(i) / "errors.txt", ended.errors_before);
    const bool killed = how.starts_with("was killed by signal");
    note_failure(i, words.empty() ? how : killed ? how + ": " + words : words);
  }
  try_to_write_results();
}

/// Has a failed run tried again if it has attempts left.
void Sweeper::note_failure(std::size_t i, const std::string& why) {
  RunState& state = states_[i];
  state.kind = Kind::failed;
  state.failure = why;
  const bool again = !stopped_ && ++failures_[i] < options_.attempts;
  say(i, "failed: " + why + (again ? "; trying again" : ""));
  if (again) {
    state.folder = find_state(part(i), runs_[i]).folder;
    waiting_.push_back(i);
  }
}

/// Returns false if the run was interrupted.
bool Sweeper::keep_result(std::size_t i) {
  std::string text = read_config_file(part(i) / "result.partial");
  states_[i].folder = find_state(part(i), runs_[i]).folder;
  if (!read_result(text, runs_[i].experiment, states_[i])) {
    return false;
  }
  unkept_[i] = std::move(text);
  return true;
}

/// Writes the results that are not on the disk yet, and the tables and curves of all runs.
void Sweeper::write_results() {
  while (!unkept_.empty()) {
    const auto& [i, text] = *unkept_.begin();
    write_text(part(i) / "result.json", text);
    fs::remove(part(i) / "result.partial");
    unkept_.erase(unkept_.begin());
  }
  write_text(options_.folder / "sweep.csv", sweep_csv(runs_, states_));
  write_text(options_.folder / "curves.csv", sweep_curves(runs_, states_));
  write_text(options_.folder / "report.html", sweep_page(options_.name, runs_, states_));
}

/// Reports the first failure, such as a full disk.
void Sweeper::try_to_write_results() {
  try {
    write_results();
    unwritten_.clear();
  } catch (const std::exception& failure) {
    if (unwritten_.empty()) {
      std::fprintf(stderr, "troupe: %s; trying again when the next run ends\n", failure.what());
    }
    unwritten_ = failure.what();
  }
}

} // namespace troupe::experiments::commands

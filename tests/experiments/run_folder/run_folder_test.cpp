#include "tests/doctest_torch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "env/processes/forked.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/resume_changes.hpp"
#include "experiments/run_folder/folder_lock.hpp"
#include "experiments/run_folder/head_file.hpp"
#include "experiments/run_folder/log_file.hpp"
#include "experiments/run_folder/metrics_file.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "experiments/run_folder/unfinished_run.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

const UtcTime kTenOClock = UtcTime(std::chrono::seconds(1'795'255'200)); // 2026-11-21T10:00:00Z

void make_checkpoint(const fs::path& run, const std::string& name, bool complete) {
  fs::create_directories(run / "checkpoints" / name);
  if (complete) {
    write_text(run / "checkpoints" / name / "manifest.json", "{}");
  }
}

Experiment walker(const std::vector<std::string>& overrides = {}) {
  return parse_experiment("name: \"mine\" environment { task: \"walker_walk\" }", "test",
                          overrides);
}

UnfinishedRun unfinished(const fs::path& runs, const Experiment& experiment) {
  return find_unfinished_run(runs, experiment.name(),
                             [&](const fs::path& run) { return fit_of_run(run, experiment); });
}

fs::path add_run(const fs::path& runs, const std::string& time, const Experiment& experiment) {
  const fs::path run = runs / experiment.name() / time;
  fs::create_directories(run);
  write_text(run / "config.textproto", resolved_text(experiment));
  return run;
}

} // namespace

TEST_CASE("Each run gets its own folder named by its time, also within the same second") {
  const TemporaryFolder runs;
  const auto first = RunFolder::create(runs.path(), "mine", kTenOClock, "one");
  const auto second = RunFolder::create(runs.path(), "mine", kTenOClock, "two");
  const auto third = RunFolder::create(runs.path(), "mine", kTenOClock, "three");
  CHECK(first.path() == fs::canonical(runs.path()) / "mine/2026-11-21T10-00-00");
  CHECK(second.path().filename() == "2026-11-21T10-00-00-2");
  CHECK(third.path().filename() == "2026-11-21T10-00-00-3");
  CHECK(read_text(first.path() / "config.textproto") == "one");
  CHECK(read_text(second.path() / "config.textproto") == "two");
  CHECK(fs::is_directory(first.path() / "checkpoints"));
  CHECK(fs::is_directory(first.path() / "videos"));
}

TEST_CASE("No process can open a run in use again until its folder is released") {
  const TemporaryFolder runs;
  fs::path path;
  {
    const auto run = RunFolder::create(runs.path(), "mine", kTenOClock, "");
    path = run.path();
    const std::string text = error_of([&] { RunFolder::open(path); });
    CHECK(text.find("another process works on this run (process " + std::to_string(::getpid()))
          != std::string::npos);
    const int status =
        status_of_child([&] { return error_of([&] { RunFolder::open(path); }) == text ? 7 : 1; });
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  }
  const auto again = RunFolder::open(path);
  CHECK(again.path() == path);
}

TEST_CASE("A process that is killed leaves no lock behind") {
  const TemporaryFolder runs;
  const fs::path path = RunFolder::create(runs.path(), "mine", kTenOClock, "").path();
  const int status = status_of_child([&] {
    const auto run = RunFolder::open(path);
    return ::raise(SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  CHECK(RunFolder::open(path).path() == path);
}

TEST_CASE("A folder that cannot be written is reported with a reason and a remedy") {
  const TemporaryFolder runs;
  write_text(runs.path() / "file", "text");
  const std::string text =
      error_of([&] { RunFolder::create(runs.path() / "file", "mine", kTenOClock, ""); });
  CHECK(text.find("cannot be made") != std::string::npos);
  CHECK(text.find("--runs") != std::string::npos);
  CHECK(read_text(runs.path() / "file") == "text");
}

TEST_CASE("A full disk is reported, and the existing file is left unchanged") {
  const std::string text = error_of([] { write_text("/dev/full/none", "text"); });
  CHECK(text.find("cannot create /dev/full/none") != std::string::npos);
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "config.textproto";
  write_text(file, "old");
  fs::create_symlink("/dev/full", file.string() + ".partial"); // where the file is first written
  const std::string full = error_of([&] { write_text(file, "new"); });
  CHECK(full.find("No space left on device") != std::string::npos);
  CHECK(full.find("free some space") != std::string::npos);
  CHECK(read_text(file) == "old");
}

TEST_CASE("A path that is not a run is refused, and the newest run below it is suggested") {
  const TemporaryFolder runs;
  CHECK(error_of([&] { RunFolder::open(runs.path() / "none"); }).find("there is no such run")
        != std::string::npos);
  const fs::path path = RunFolder::create(runs.path(), "mine", kTenOClock, "").path();
  const std::string text = error_of([&] { check_is_run(runs.path() / "mine"); });
  CHECK(text.find("did you mean") != std::string::npos);
  CHECK(text.find("2026-11-21T10-00-00") != std::string::npos);
  CHECK_FALSE(fs::exists(runs.path() / "mine/lock"));
}

TEST_CASE("Only checkpoints with a manifest count, and the one with the largest number is used") {
  const TemporaryFolder run;
  CHECK(error_of([&] { find_checkpoint(run.path()); }).find("no complete checkpoint")
        != std::string::npos);
  make_checkpoint(run.path(), "900", true);
  make_checkpoint(run.path(), "1000", true);
  make_checkpoint(run.path(), "2000", false);
  make_checkpoint(run.path(), "3000.new", true);
  make_checkpoint(run.path(), "-5", true);
  CHECK(complete_checkpoints(run.path()).size() == 2);
  CHECK(find_checkpoint(run.path()).updates == 1000);
  CHECK(find_checkpoint(run.path(), 900).path == run.path() / "checkpoints/900");
  CHECK(error_of([&] { find_checkpoint(run.path(), 2000); }).find("there are 900, 1000")
        != std::string::npos);
}

TEST_CASE("A restarted deployment continues the newest run if it has not finished") {
  const TemporaryFolder runs;
  const Experiment mine = walker();
  const auto found = [&] { return unfinished(runs.path(), mine).run; };
  CHECK(found().empty());
  fs::create_directories(runs / "mine/2026-11-21T10-00-00");
  CHECK(found().empty()); // not a run folder
  const fs::path first = add_run(runs.path(), "2026-11-21T10-00-00", mine);
  CHECK(found() == first);
  write_text(first / "metrics.csv", "kind,environment_steps\nprogress,5\nevaluation,5\n");
  CHECK(found() == first);
  CHECK(unfinished(runs.path(), walker({"name=others"})).run.empty());
  write_text(first / "metrics.csv", "kind,environment_steps\nfinal,5\n");
  CHECK(found().empty());
  write_text(first / "metrics.csv", "kind,environment_steps\nfinal,5\nprogress,6\nfinal,7");
  CHECK(found() == first); // continued since, and its last row is incomplete
  write_text(first / "metrics.csv", "kind,environment_steps\nfinal,5\nprogress,6\nfinal,7\n");
  CHECK(found().empty());
  const fs::path second = add_run(runs.path(), "2026-11-21T10-00-00-2", mine);
  CHECK(found() == second);
}

TEST_CASE("A restarted deployment leaves the runs of other jobs in its folder alone") {
  const TemporaryFolder runs;
  const auto found = [&](const std::vector<std::string>& overrides) {
    return unfinished(runs.path(), walker(overrides));
  };
  const fs::path mine = add_run(runs.path(), "2026-11-21T10-00-00", walker());
  const fs::path other = add_run(runs.path(), "2026-11-21T11-00-00", walker({"seed=9"}));
  CHECK(found({}).run == mine);
  CHECK(found({"seed=9"}).run == other);
  CHECK(found({"checkpoint.keep_best=2"}).run == mine); // the newest that fits
  CHECK(found({"checkpoint.keep_best=2"}).note.empty());
  CHECK(found({"seed=3"}).run.empty());
  CHECK(has(found({"seed=3"}).note, other.string() + " is not resumed: seed was 9 and is 3"));

  add_run(runs.path(), "2026-11-21T12-00-00", walker({"d4pg.policy_learning_rate=0.5"}));
  write_text(add_run(runs.path(), "2026-11-21T13-00-00", walker()) / "config.textproto", "damaged");
  CHECK(found({}).run == mine);
  const RunFolder held = RunFolder::open(mine);
  CHECK(found({}).run == mine); // there is no other of this experiment: opening it says who works
  const fs::path earlier = add_run(runs.path(), "2026-11-21T09-00-00", walker());
  CHECK(found({}).run == earlier);
}

TEST_CASE("A log has one line per event and no control characters") {
  const TemporaryFolder folder;
  LogFile log(folder / "log.txt");
  log.write(kTenOClock, "warning", "an environment says \x1b]0;owned\x07\nand more");
  CHECK(read_text(folder / "log.txt")
        == "2026-11-21T10:00:00Z warning an environment says \\x1b]0;owned\\x07 and more\n");
}

TEST_CASE("Processes that check whether a run is held never prevent it from being resumed") {
  const TemporaryFolder folder;
  const fs::path& run = folder.path();
  CHECK(is_run_held(run) == false);
  std::vector<std::jthread> watchers;
  for (int i = 0; i < 4; ++i)
    watchers.emplace_back([&run](const std::stop_token& stop) {
      while (!stop.stop_requested())
        is_run_held(run);
    });
  for (int i = 0; i < 2000; ++i) {
    const FolderLock held(run, "this run"); // throws if the folder is locked
    CHECK(is_run_held(run) == true);
  }
  watchers.clear();
  CHECK(is_run_held(run) == false);
}

TEST_CASE("metrics.csv keeps its rows if another program has changed its line ends") {
  const TemporaryFolder folder;
  const fs::path path = folder / "metrics.csv";
  { MetricsFile(path, MetricsFile::columns({})).progress({}); }
  std::string text = read_text(path);
  std::erase(text, '\r');
  std::ofstream(path, std::ios::binary) << text << "progress,12,3"; // and a kill
  { MetricsFile(path, MetricsFile::columns({})).progress({}); }
  CHECK(read_text(path).starts_with(text + "progress,0,"));
  CHECK(read_csv(read_text(path)).size() == 3);
}

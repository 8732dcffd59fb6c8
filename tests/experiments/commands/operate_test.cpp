#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "experiments/report/status_text.hpp"
#include "experiments/run_folder/folder_lock.hpp"
#include "experiments/run_folder/head_file.hpp"
#include "experiments/run_folder/rotated_file.hpp"
#include "experiments/run_folder/run_logs.hpp"
#include "tests/full_disk.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

fs::path make_run(const fs::path& runs, const std::string& name, const std::string& time) {
  const fs::path run = runs / name / time;
  fs::create_directories(run);
  std::ofstream(run / "config.textproto") << "name: \"x\"\n";
  return run;
}

HeadPlace place(const std::string& started) {
  return {.host = "a",
          .address = "10.0.0.1",
          .port = 4242,
          .process = 17,
          .keys = true,
          .started = started};
}

std::string refusal(const fs::path& run, const fs::path& runs) {
  return error_of<std::invalid_argument>([&] { find_live_run(run, runs); });
}

std::string said(const std::vector<LogLine>& lines) {
  std::string text;
  for (const LogLine& line : lines)
    text += line.who + "|" + line.text + "\n";
  return text;
}

void append(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

} // namespace

TEST_CASE("A head file exists only while its head lives, and an invalid one is refused") {
  const TemporaryFolder folder;
  CHECK_FALSE(read_head_file(folder.path()));
  {
    HeadFile file(folder.path(), place("2026-11-21T10:00:00Z"));
    {
      const FullDisk full;
      CHECK_THROWS_WITH_AS(file.write(), doctest::Contains("head.json"), std::runtime_error);
    }
    CHECK_FALSE(read_head_file(folder.path()));
    file.write();
    const auto read = read_head_file(folder.path());
    REQUIRE(read);
    CHECK(read->address == "10.0.0.1");
    CHECK(read->port == 4242);
    CHECK(read->process == 17);
    CHECK(read->keys);
  }
  CHECK_FALSE(read_head_file(folder.path()));
  for (const char* garbage :
       {"", "{", "[]", "{\"port\": 1}",
        "{\"version\":1,\"host\":\"a\",\"address\":\"b\",\"port\":70000,\"process\":1,"
        "\"keys\":false,\"started\":\"\"}",
        "{\"version\":2,\"host\":\"a\",\"address\":\"b\",\"port\":1,\"process\":1,\"keys\":false,"
        "\"started\":\"\"}",
        "{\"version\":1,\"host\":\"a\",\"address\":\"\",\"port\":1,\"process\":1,\"keys\":false,"
        "\"started\":\"\"}"}) {
    CAPTURE(garbage);
    std::ofstream(folder / "head.json") << garbage;
    CHECK_THROWS_AS(read_head_file(folder.path()), std::runtime_error);
  }
}

TEST_CASE("Commands use the named run or the newest live one, and the error says why a run cannot "
          "be used") {
  const TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  CHECK(has(refusal({}, runs), "no live run below it"));
  const fs::path old = make_run(runs, "a", "1"), young = make_run(runs, "b", "2"),
                 dead = make_run(runs, "a", "3"), alone = make_run(runs, "a", "4"),
                 over = make_run(runs, "a", "5");
  HeadFile old_head(old, place("2026-11-21T10:00:00Z")),
      young_head(young, place("2026-11-21T11:00:00Z")),
      dead_head(dead, place("2026-11-21T12:00:00Z"));
  for (HeadFile* const file : {&old_head, &young_head, &dead_head})
    file->write();
  const FolderLock old_lock(old, "this run"), alone_lock(alone, "this run");
  {
    const FolderLock young_lock(young, "this run"), was_dead(dead, "this run");
    CHECK(find_live_run({}, runs).run == dead);
  }
  CHECK(find_live_run({}, runs).run == old); // the others' locks are free
  {
    const FolderLock young_lock(young, "this run");
    CHECK(find_live_run({}, runs).run == young);
    CHECK(find_live_run(old, runs).run == old);
    CHECK(find_live_run(old, runs).head.port == 4242);
  }
  CHECK(has(refusal(dead, runs), "was killed; `troupe resume`"));
  CHECK(has(refusal(alone, runs), "cannot be operated"));
  CHECK(has(refusal(over, runs), "no process works on this run"));
  CHECK(has(refusal(folder / "none", runs), "there is no such run"));
  CHECK(find_run_with_logs({}, runs) == old);
  CHECK(find_run_with_logs(over, runs) == over);
  make_run(runs, "sweep", "seed=1");
  CHECK(find_run({}, runs) == over);
  CHECK(find_run(young, runs) == young);
  CHECK_THROWS_WITH_AS(find_run({}, folder / "none"), doctest::Contains("no run below it"),
                       std::invalid_argument);
}

TEST_CASE("A rotated log holds the newest lines and never exceeds twice its limit") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.log";
  std::uintmax_t most = 0;
  for (int life = 0; life < 2; ++life) { // it continues where it was
    RotatedFile file(path, 100);
    for (int i = 0; i < 50; ++i) {
      file.write("line " + std::to_string(50 * life + i));
      most = std::max(most, fs::file_size(path));
    }
  }
  CHECK(most <= 100);
  CHECK(fs::file_size(folder / "a.log.1") <= 100);
  CHECK(has(read_text(path), "line 99\n"));
  CHECK(has(read_text(folder / "a.log.1") + read_text(path), "line 88\nline 89\nline 90\n"));
  RotatedFile file(path, 100);
  file.write(std::string(1000, 'x'));
  CHECK(fs::file_size(path) <= 100);
  RotatedFile nowhere(folder / "none" / "a.log", 100);
  nowhere.write("lost");
}

TEST_CASE("Logs of head, nodes and roles are merged by time and filtered by role and node") {
  const TemporaryFolder folder;
  const fs::path run = folder.path();
  fs::create_directories(run / "logs");
  const std::string t = "2026-11-21T10:00:0";
  append(run / "log.txt", t + "1Z info training\n" + t + "5Z warning slow\n");
  append(run / "nodes.log", t + "2Z n-0: node: joined\n");
  append(role_log(run, "environment", 3), t + "3Z n-1: no camera\n" + t + "6Z n-0: half a li");
  append(role_log(run, "learner", 0), t + "4Z n-0: hot\n");
  append(run / "logs" / "learner-x.log", "not ours\n");
  const auto all = [&](const std::string& role, const std::string& node) {
    return said(RunLogs(run, {.role = role, .node = node}).read());
  };
  CHECK(all("", "")
        == "head|info training\nnode n-0|node: joined\nenvironment/3 on n-1|no camera\n"
           "learner/0 on n-0|hot\nhead|warning slow\n");
  CHECK(all("head", "") == "head|info training\nhead|warning slow\n");
  CHECK(all("environment", "") == "environment/3 on n-1|no camera\n");
  CHECK(all("environment/3", "") == "environment/3 on n-1|no camera\n");
  CHECK(all("environment/2", "").empty());
  CHECK(all("", "n-0") == "node n-0|node: joined\nlearner/0 on n-0|hot\n");
  CHECK(all("learner", "n-1").empty());
  CHECK_THROWS_AS(RunLogs(run, {.role = "actor", .node = ""}), std::invalid_argument);
}

TEST_CASE("Following logs handles new files, partial lines and rotation without repeating a line") {
  const TemporaryFolder folder;
  const fs::path run = folder.path();
  fs::create_directories(run / "logs");
  RunLogs logs(run, {});
  CHECK(logs.read().empty());
  const fs::path path = role_log(run, "replay", 0);
  const std::string t = "2026-11-21T10:00:00Z head: ";
  append(path, t + "one\n" + t + "tw");
  CHECK(said(logs.read()) == "replay/0 on head|one\n");
  append(path, "o\n" + t + "three\n");
  CHECK(said(logs.read()) == "replay/0 on head|two\nreplay/0 on head|three\n");
  append(path, t + "four\n");
  fs::rename(path, path.string() + ".1");
  append(path, t + "five\n");
  CHECK(said(logs.read()) == "replay/0 on head|four\nreplay/0 on head|five\n");
  CHECK(logs.read().empty());
  CHECK(said(RunLogs(run, {}).read())
        == "replay/0 on head|one\nreplay/0 on head|two\nreplay/0 on head|three\n"
           "replay/0 on head|four\nreplay/0 on head|five\n");
}

TEST_CASE("Of long logs, only the newest lines are read") {
  const TemporaryFolder folder;
  const fs::path run = folder.path();
  fs::create_directories(run / "logs");
  const fs::path path = role_log(run, "replay", 0);
  const auto line = [](int i) {
    return "2026-11-21T10:00:00Z head: line" + std::to_string(i) + "\n";
  };
  const auto append_lines = [&] {
    for (int i = 0; i < 10; ++i)
      append(path, line(i)); // 33 bytes
  };
  append_lines();
  const std::string last = "replay/0 on head|line8\nreplay/0 on head|line9\n";
  RunLogs logs(run, {}, 100); // all for this file, because there is no other one
  CHECK(said(logs.read()) == "replay/0 on head|line7\n" + last);
  append_lines();
  CHECK(said(logs.read()) == "replay/0 on head|line7\n" + last);
  fs::rename(path, path.string() + ".1");
  append(path, line(1));
  CHECK(said(RunLogs(run, {}, 100).read()) == last + "replay/0 on head|line1\n");
  const std::string head =
      "2026-11-21T10:00:01Z short\n"; // 27 bytes, which leave the rest to the other
  append(run / "log.txt", head);
  CHECK(said(RunLogs(run, {}, 127).read()) == last + "replay/0 on head|line1\nhead|short\n");
}

TEST_CASE("A status is printed as a table and as one JSON object") {
  actors::wire::RunStatus status;
  status.mutable_head()->set_phase("training");
  status.mutable_head()->set_folder("/runs/a/1");
  status.mutable_head()->set_still(31);
  status.mutable_head()->set_restarts(2);
  status.mutable_head()->set_took_over(5);
  status.mutable_head()->set_had_processes(6);
  status.mutable_head()->set_refused_connections(9);
  auto& failure = *status.mutable_head()->add_failures();
  failure.set_age(65);
  failure.set_text("replay actor 0 died: it was killed");
  status.mutable_counters()->set_updates(12);
  status.mutable_counters()->set_replay_failed_spills(7);
  status.mutable_head()->set_failed_copies(3);
  status.mutable_counters()->set_episode_return(std::nan(""));
  status.mutable_supervisor()->set_restarts_allowed(3);
  auto& node = *status.mutable_supervisor()->add_nodes();
  node.set_name("n-0");
  node.set_there(true);
  auto& process = *status.mutable_supervisor()->add_processes();
  process.set_role("environment");
  process.set_index(3);
  process.set_node("n-0");
  process.set_process(4711);
  process.set_state("up");
  process.set_restarts(2);
  status.add_waits("learner 0: waiting for samples from replay 2");
  const auto text = status_text(place("2026-11-21T10:00:00Z"), status);
  for (const char* part :
       {"/runs/a/1", "nothing has moved for 31 s", "10.0.0.1:4242, TLS",
        "restarted 2 times, took over 5 processes of 6, refused 9 connections of strangers",
        "12 updates", "7 failed spills", "3 not copied to checkpoint.store",
        "environment/3  n-0   4711  up", "2 of 3", "learner 0: waiting for samples from replay 2",
        "1 min 05 s ago: replay actor 0 died"}) {
    CAPTURE(part);
    CAPTURE(text);
    CHECK(has(text, part));
  }
  const auto told = nlohmann::json::parse(status_json(place("2026-11-21T10:00:00Z"), status));
  CHECK(told["processes"][0]["process"] == 4711);
  CHECK(told["nodes"][0]["up"] == true);
  CHECK(told["counters"]["episode_return"].is_null());
  CHECK(told["counters"]["replay_failed_spills"] == 7);
  CHECK(told["checkpoint"]["failed_copies"] == 3);
  CHECK(told["waits"][0] == "learner 0: waiting for samples from replay 2");
  CHECK(told["failures"][0]["seconds_ago"] == 65);
  CHECK(told["head"]["restarts"] == 2);
  CHECK(told["head"]["took_over"] == 5);
  CHECK(told["head"]["had_processes"] == 6);
  CHECK(told["head"]["refused_connections"] == 9);
}

TEST_CASE("Text is cut to the lines and columns of the screen at whole characters") {
  CHECK(cut_to_screen("abc\ndefg\nhi\n", 2, 3) == "abc\ndef\n");
  CHECK(cut_to_screen("…….\n", 5, 2) == "……\n");
  CHECK(cut_to_screen("", 5, 2).empty());
}

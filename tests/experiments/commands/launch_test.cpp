#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/experiments/commands/program.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

/// A cluster of two nodes and a role that fills them, whatever hardware this host has.
void write_cluster(const fs::path& file, const std::string& more = "") {
  std::ofstream(file) << "node { name: \"n\" count: 2 cores: 4 memory_bytes: 17179869184 }\n"
                      << more;
}

/// The written cluster file with its lines for other hosts in place of those for this one.
std::string with_own_hosts(const std::string& text) {
  std::istringstream lines(text);
  std::string made;
  for (std::string line; std::getline(lines, line);) {
    const bool is_key = line.starts_with("# node {") || line.starts_with("# ssh {")
                        || line.starts_with("# head {") || line.starts_with("# keys:")
                        || line.starts_with("# runs:");
    const bool is_of_this_host = line.starts_with("node {") || line.starts_with("local {")
                                 || line.starts_with("oversubscribe:");
    if (!is_of_this_host) {
      made += (is_key ? line.substr(2) : line) + "\n";
    }
  }
  return made;
}

} // namespace

TEST_CASE("A new cluster folder trains as its README says, and plans for hosts of its own") {
  const TemporaryFolder folder;
  REQUIRE(run_troupe({"new", "cluster", "lab"}, folder.path()).exit_code == 0);
  const fs::path lab = folder / "lab";
  const std::string readme = read_text(lab / "README.md");
  const std::size_t begin = readme.find("```sh\n") + 6;
  Program shell({"sh", "-e", "-c", readme.substr(begin, readme.find("```", begin) - begin)}, lab);
  const int exit_code = shell.wait();
  CAPTURE(shell.output());
  CHECK(exit_code == 0);
  CHECK(fs::exists(lab / "runs/cartpole_swingup"));

  std::ofstream(lab / "hosts.textproto") << with_own_hosts(read_text(lab / "lab.textproto"));
  const Outcome planned =
      run_troupe({"launch", "hosts.textproto", "quickstart", "--dry-run", "--json"}, lab);
  CAPTURE(planned.output);
  REQUIRE(planned.exit_code == 0);
  const auto plan = nlohmann::json::parse(planned.output);
  CHECK(plan["launcher"] == "ssh");
  REQUIRE(plan["free"].size() == 2);
  CHECK(plan["free"][0]["address"] == "10.0.0.11");
  CHECK(plan["free"][1]["address"] == "10.0.0.12");
}

TEST_CASE("A dry run prints the placement and the free resources and starts nothing") {
  const TemporaryFolder folder;
  write_cluster(folder / "two.textproto", "role { name: \"environment\" count: 3 cores: 1 }");
  const Outcome outcome =
      run_troupe({"launch", "two.textproto", "quickstart", "--dry-run"}, folder.path());
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.output
        == "role         index  node  cores  gpu  memory\n"
           "environment  0      n-1   1      -    -\n"
           "environment  1      n-0   3      -    -\n"
           "environment  2      n-1   2      -    -\n"
           "evaluator    0      n-1   3      -    -\n"
           "learner      0      n-0   0,1    -    -\n"
           "replay       0      n-1   0      -    2 GiB\n"
           "replay       1      n-0   2      -    2 GiB\n"
           "\n"
           "free on  cores  gpu  memory\n"
           "n-0      -      -    14 GiB\n"
           "n-1      -      -    14 GiB\n");
  CHECK_FALSE(fs::exists(folder / "runs"));
}

TEST_CASE("A dry run prints the placement as JSON, and --set overrides the cluster's counts") {
  const TemporaryFolder folder;
  write_cluster(folder / "two.textproto", "role { name: \"environment\" count: 3 }");
  const Outcome outcome =
      run_troupe({"launch", "two.textproto", "quickstart", "--dry-run", "--json", "--set",
                  "actors.environment=2", "--launcher", "none"},
                 folder.path());
  CAPTURE(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  const auto answer = nlohmann::json::parse(outcome.output);
  CHECK(answer["cluster"] == "two");
  CHECK(answer["launcher"] == "none");
  CHECK(answer["experiment"] == "quickstart");
  CHECK(answer["placement"].size() == 6);
  CHECK(answer["placement"][0]["role"] == "environment");
  CHECK(answer["placement"][0]["cores"].is_string());
  CHECK(answer["free"].size() == 2);
  CHECK(answer["free"][0]["memory_bytes"].get<std::int64_t>() > 0);
}

TEST_CASE("A cluster described by TF_CONFIG is placed") {
  const TemporaryFolder folder;
  const Outcome outcome = [&] {
    Program program({"env",
                     R"(TF_CONFIG={"cluster": {"worker": ["localhost:5001", "localhost:5002"]}, )"
                     R"("task": {"type": "worker", "index": 0}})",
                     "troupe", "launch", "TF_CONFIG", "quickstart", "--dry-run"},
                    folder.path());
    const int exit_code = program.wait();
    return Outcome{exit_code, program.output(), program.last_line()};
  }();
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(has(outcome.output, "learner      1      worker-1  ?"));
}

TEST_CASE("Manifests are written as files, and the output names the command to run next") {
  const TemporaryFolder folder;
  write_cluster(folder / "job.textproto", "slurm {} keys: \"my keys\"");
  const Outcome outcome = run_troupe(
      {"launch", "job.textproto", "quickstart", "--manifests", "the job"}, folder.path());
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(has(outcome.output, "the job: 3 files. Then:\nsbatch '"));
  CHECK(has(outcome.last_line, "/the job/job.sh'"));
  CHECK(has(read_text(folder / "the job/job.sh"),
            "export TROUPE_KEYS='" + (fs::canonical(folder.path()) / "my keys").string() + "'"));
  CHECK(has(read_text(folder / "the job/experiment.textproto"), "quickstart"));
  Program script({"bash", "-n", "the job/job.sh"}, folder.path());
  CHECK(script.wait() == 0);
}

TEST_CASE("A user error in a launch exits with code 2, and the last line names it") {
  const TemporaryFolder folder;
  write_cluster(folder / "two.textproto");
  write_cluster(folder / "gpu.textproto", "role { name: \"learner\" gpus: 1 }");
  std::ofstream(folder / "none.textproto") << "runs: \"r\"";
  struct Mistake {
    std::vector<std::string> words;
    std::string part; // part of the last line
  };
  for (const Mistake& mistake : std::vector<Mistake>{
           {{"launch"}, "troupe launch --help"},
           {{"launch", "laptp", "quickstart", "--dry-run"},
            "did you mean laptop? (`troupe list clusters` names them all)"},
           {{"launch", "two.textproto", "quickstrt", "--dry-run"}, "did you mean quickstart"},
           {{"launch", "two.textproto", "quickstart", "--dry-run", "--launcher", "ssh"},
            "--launcher"},
           {{"launch", "two.textproto", "quickstart", "--manifests", "m"},
            "neither a kubernetes nor a slurm block"},
           {{"launch", "two.textproto", "quickstart", "--dry-run", "--listen", "0.0.0.0:1"},
            "keys is empty and head.listen is 0.0.0.0:1"},
           {{"launch", "two.textproto", "quickstart", "--dry-run", "--set", "replay.shards=0"},
            "replay.shards is 0"},
           {{"launch", "two.textproto", "quickstart", "--dry-run", "--set", "actors.environment=9"},
            "environment 4 needs 1 core; no node has that: the nearest, n-0, has 0 of 4 cores "
            "free"},
           {{"launch", "gpu.textproto", "quickstart", "--dry-run"}, "has 0 of 0 GPUs free"},
           {{"launch", "none.textproto", "quickstart", "--dry-run"}, "names no nodes"},
           {{"node", "--head", "127.0.0.1:1", "--address", "fd00::1"},
            "--address (TROUPE_ADDRESS) is \"fd00::1\"; it must be a host name or an IPv4 address"},
           {{"launch", "TF_CONFIG", "quickstart", "--dry-run"}, "TF_CONFIG is not set"}}) {
    CAPTURE(mistake.words.back());
    const Outcome outcome = run_troupe(mistake.words, folder.path());
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(has(outcome.last_line, "troupe: "));
    CHECK(has(outcome.last_line, mistake.part));
  }
  CHECK_FALSE(fs::exists(folder / "m"));
}

TEST_CASE("A working folder with a line break gives no orders to hosts over SSH") {
  const TemporaryFolder folder;
  const fs::path hostile = folder / "x\nword |touch|\nword |owned|\nrun";
  fs::create_directory(hostile);
  std::ofstream(hostile / "hosts.textproto")
      << "ssh {} oversubscribe: true\n"
         "node { name: \"n\" address: \"127.0.0.1\" cores: 4 memory_bytes: 17179869184 }";
  const Outcome outcome = run_troupe({"launch", "hosts.textproto", "quickstart"}, hostile);
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 1);
  CHECK(has(outcome.output, "the working folder, where nodes start, is \""));
  CHECK(has(outcome.last_line, "run\"; it must be one line"));
}

TEST_CASE("A file that cannot be copied to the hosts is reported, and does not end the launcher") {
  const TemporaryFolder folder;
  REQUIRE(run_troupe({"keys", "cluster", "keys"}, folder.path()).exit_code == 0);
  std::ofstream(folder / "keys/a\nb") << "";
  std::ofstream(folder / "hosts.textproto")
      << "ssh {} oversubscribe: true keys: \"keys\" supervision { node_losses: 1 }\n"
         "node { name: \"n\" address: \"127.0.0.1\" cores: 4 memory_bytes: 17179869184 }";
  Program program({in_build("troupe"), "launch", "hosts.textproto", "quickstart"}, folder.path());
  const std::string problem = "troupe: the nodes cannot be started: cannot copy ";
  // Its second report shows that the launcher has tried again.
  CHECK(program.read_until(
      [&](const std::string& output) { return output.find(problem) != output.rfind(problem); }));
  program.send(SIGTERM);
  program.wait();
  CAPTURE(program.output());
  CHECK(has(program.output(), "its name contains a line break"));
}

TEST_CASE("The bundled clusters and the cluster keys are listed") {
  const Outcome clusters = run_troupe({"list", "clusters"});
  CHECK(clusters.exit_code == 0);
  for (const char* name : {"laptop ", "ssh ", "slurm ", "kubernetes ", "mpi "})
    CHECK(has(clusters.output, name));
  CHECK(has(run_troupe({"list", "cluster-keys"}).output, "supervision.lost_seconds = 10\n"));
}

TEST_CASE("Every file that the Dockerfile copies exists") {
  const fs::path top = in_source();
  std::ifstream in(top / "experiments/packaging/Dockerfile");
  int count = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != "COPY" || has(line, "--from="))
      continue;
    std::vector<std::string> paths;
    while (words >> word) {
      if (!word.starts_with("--"))
        paths.push_back(word);
    }
    REQUIRE(paths.size() >= 2);
    for (std::size_t i = 0; i + 1 < paths.size(); ++i) {
      CAPTURE(paths[i]);
      CHECK(fs::exists(top / paths[i]));
      ++count;
    }
  }
  CHECK(count >= 8);
}

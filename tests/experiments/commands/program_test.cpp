#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "experiments/run_folder/run_folder.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// The first words of the lines in a section of a help text, such as "Subcommands:".
std::vector<std::string> names_in_help(const std::string& help, const std::string& section) {
  std::vector<std::string> names;
  std::istringstream lines(help);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(" ")) {
      inside = line == section;
    } else if (inside && line.size() > 2 && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return names;
}

/// Checks the help of a command and of all commands below it. Returns how many there are.
int check_help(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  words.emplace_back("--help");
  const Outcome outcome = run_troupe(words);
  const std::string& help = outcome.output;
  CAPTURE(help);
  CHECK(outcome.exit_code == 0);
  CHECK(has(help, "Example: troupe "));
  for (const char* raw : {":INT", ":UINT", ":FLOAT", ":TEXT", ":{", "(Env:", "e+"})
    CHECK_MESSAGE(!has(help, raw), raw);
  for (const std::string& name : names_in_help(help, "Positionals:"))
    CHECK_MESSAGE(
        std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; }), name);
  int count = 1;
  for (const std::string& name : names_in_help(help, "Subcommands:")) {
    words = command;
    words.push_back(name);
    count += check_help(words);
  }
  return count;
}

} // namespace

TEST_CASE("The help of every command has an example, plain types and capital positionals") {
  CHECK(check_help({}) > 45);
  CHECK(check_help({"actor"}) == 1); // hidden
  CHECK_FALSE(has(run_troupe({"--help"}).output, "  actor "));
  CHECK(run_troupe({"--version"}).exit_code == 0);
  const std::string launch = run_troupe({"launch", "--help"}).output;
  CHECK(has(launch, "(0 to 10000000)"));
  CHECK(has(launch, "CLUSTER"));
  const std::string stop = run_troupe({"stop", "--help"}).output;
  CHECK(has(stop, "or the variable TROUPE_KEYS"));
  CHECK(has(run_troupe({"export", "--help"}).output, "--weights float|bfloat16|int8"));
}

TEST_CASE("The built-in agents are listed with what they support, as in the README's table") {
  const Outcome outcome = run_troupe({"list", "agents", "--json"});
  REQUIRE(outcome.exit_code == 0);
  const json agents = json::parse(outcome.output);
  const std::string text = "\n" + run_troupe({"list", "agents"}).output;
  const std::string readme = read_text(in_source("learner/agents/README.md"));
  const auto yes = [](bool value) { return std::string(value ? "yes | " : "no | "); };
  for (const json& agent : agents) {
    const auto name = agent.at("name").get<std::string>();
    CAPTURE(name);
    const json& seen = agent.at("observations");
    const auto sees = [&](const char* kind) {
      return std::find(seen.begin(), seen.end(), kind) != seen.end();
    };
    const auto actions = agent.at("actions").get<std::string>();
    const auto at = text.find("\n" + name + " ");
    REQUIRE(at != std::string::npos);
    CHECK(text.substr(at, text.find("; replicas", at) - at).ends_with("; actions: " + actions));
    const std::string discrete = has(actions, "choices")      ? "choices | "
                                 : has(actions, "one choice") ? "one choice | "
                                                              : "no | ";
    const std::string row = "\n| `" + name + "` | " + yes(sees("states")) + yes(sees("pixels"))
                            + yes(sees("both together")) + yes(has(actions, "continuous"))
                            + discrete;
    const std::string end =
        yes(agent.at("replicas").get<bool>()) + yes(agent.at("asynchronous").get<bool>());
    if (agent.at("recurrent").get<bool>()) {
      CHECK((has(readme, row + "yes | " + end) || has(readme, row + "with `lstm` | " + end)));
    } else {
      CHECK(has(readme, row + "no | " + end));
    }
  }
  std::string rows = readme.substr(readme.find("| agent | states | pixels | both together | "));
  rows = rows.substr(0, rows.find("\n\n"));
  std::size_t listed = 0;
  for (auto at = rows.find("\n| `"); at != std::string::npos; at = rows.find("\n| `", at + 1)) {
    ++listed;
  }
  CHECK(listed == agents.size());
  CHECK(agents.size() >= 10);
}

TEST_CASE("A user error exits with code 2, and the last line names it") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "bad.textproto") << "environment { task: \"cartpole_balanc\" }";
  std::ofstream(folder.path() / "open.textproto")
      << "environment { task: \"cartpole_balance\"\nstop { minutes: 1 }";
  struct Mistake {
    std::vector<std::string> words;
    std::string part; // part of the last line
  };
  const std::string here = folder.path().string();
  for (const Mistake& mistake : std::vector<Mistake>{
           {{}, "troupe --help"},
           {{"trian", "x"},
            "trian: `troupe` has no such command; did you mean train? (`troupe --help`"},
           {{"check", "enviroment"},
            "`troupe check` has no such command; did you mean environment?"},
           {{"replay", "info", "--secconds=3"},
            "`troupe replay info` has no such option; did you mean --seconds?"},
           {{"check", "environment", "cartpole_balanse"}, "troupe: cartpole_balanse: "},
           {{"resume", "--colour"}, "--colour: `troupe resume` has no such option"},
           {{"train", "quickstart", "twice"}, "twice: `troupe train` takes no such argument"},
           {{"resume"}, "there is no run below it"},
           {{"evaluate"}, "there is no run below it"},
           {{"export"}, "there is no run below it"},
           {{"play"}, "there is no run below it"},
           {{"serve", "policy"}, "there is no run below it"},
           {{"serve", "policy", "--version", "b=x", "none"}, "there is no such run"},
           {{"serve", "environment", "--option", "a=1", "cheetah_rum", "--json"}, "cheetah_rum"},
           {{"train"}, "quickstart"},
           {{"train", "quickstrat"}, "did you mean quickstart"},
           {{"train", "bad.textproto"}, "did you mean cartpole_balance"},
           {{"train", "open.textproto"},
            "open.textproto:2:1: environment.stop is not a key; stop stands outside environment: "
            "is a "
            "} missing"},
           {{"train", "quickstart", "--set", "replay.shard=2"}, "replay.shards"},
           {{"train", "quickstart", "--set", "replay.shards=0"}, "from 1 to 64"},
           {{"train", "quickstart", "--minutes", "-3"}, "--minutes"},
           {{"train", "quickstart", "--minutes", "nan"}, "--minutes: nan is not a finite number"},
           {{"resume", "--minutes", "inf"}, "--minutes"},
           {{"launch", "laptop", "quickstart", "--minutes", "nan"}, "--minutes: nan is not"},
           {{"serve", "environment", "cheetah_run", "--silence", "nan"},
            "--silence: nan is not a finite number"},
           {{"sweep", "quickstart", "--minutes", "nan"}, "--minutes: nan is not a finite number"},
           {{"train", "\x1b[2J\xff"}, "\\x1b[2J\\xff"},
           {{"train", "quickstart", "--colour"}, "--colour"},
           {{"resume", "none"}, "there is no such run"},
           {{"resume", here}, "is not a run's folder"},
           {{"evaluate", "none"}, "there is no such run"},
           {{"evaluate", here, "--episodes", "0"}, "--episodes"},
           {{"list", "colours"}, "colours"},
           {{"bench", "nothing"}, "must be one of"},
           {{"check"}, "troupe check --help"},
       }) {
    const Outcome outcome = run_troupe(mistake.words, folder.path());
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(has(outcome.last_line, "troupe: "));
    CHECK(has(outcome.last_line, mistake.part));
  }
  CHECK_FALSE(fs::exists(folder.path() / "runs")); // no refused command left anything behind
}

TEST_CASE("A failure that is not a user error exits with code 1") {
  const TemporaryFolder folder;
  CHECK(run_troupe({"check", "golden", "none"}, folder.path()).exit_code == 1);
  std::ofstream(folder.path() / "file") << "";
  const Outcome outcome =
      run_troupe({"train", "cartpole_swingup", "--runs", "file"}, folder.path());
  CHECK(outcome.exit_code == 1);
  CHECK(has(outcome.last_line, "--runs"));
}

TEST_CASE("list prints environments, keys, experiments and benches as text and as JSON") {
  const std::string environments = run_troupe({"list", "environments"}).output;
  CHECK(has(environments, "\nwalker_walk "));
  CHECK(has(environments, " benchmarking "));
  CHECK(has(environments, " orientations[14] height[] velocity[9]\n"));
  const std::string ant = run_troupe({"list", "environments", "Ant-v5"}).output;
  CHECK(has(ant, "  option       healthy_z_range=0.2,1\n"));
  CHECK(has(ant, "  action       7: -1 to 1\n"));
  CHECK(has(run_troupe({"list", "environments", "Ant-v6"}).last_line, "Ant-v5"));
  CHECK(run_troupe({"list", "keys", "replay"}).output.starts_with("replay.shards = 1\n"));
  CHECK(run_troupe({"list", "keys", "seed"}).output.starts_with("seed = "));
  CHECK(has(run_troupe({"list", "keys", "replya"}).last_line, "did you mean replay?"));
  CHECK(run_troupe({"list", "sweeps", "seed"}).exit_code == 2);
  CHECK(has(run_troupe({"list", "keys"}).output, "replay.shards = 1\n"));
  CHECK(has(run_troupe({"list", "experiments"}).output, "quickstart "));
  const json tasks = json::parse(run_troupe({"list", "environments", "--json"}).output);
  const auto cheetah = std::find_if(tasks.begin(), tasks.end(), [](const json& task) {
    return task.at("name") == "cheetah_run";
  });
  REQUIRE(cheetah != tasks.end());
  CHECK(cheetah->at("action_size") == 6);
  CHECK(cheetah->at("episode_steps") == 1000);
  CHECK(cheetah->at("observations").at(0).at("shape") == json::array({8}));
  CHECK(cheetah->at("tags") == json::array({"benchmarking"}));
  const json keys = json::parse(run_troupe({"list", "keys", "--json"}).output);
  CHECK(keys.size() > 50);
  CHECK(keys.at(0).contains("help"));
  CHECK(json::parse(run_troupe({"list", "experiments", "--json"}).output).size() >= 7);
  CHECK(json::parse(run_troupe({"list", "benches", "--json"}).output).is_array());
}

TEST_CASE("doctor reports every version and the machine, and fails where runs cannot be written") {
  const TemporaryFolder folder;
  const json findings = json::parse(run_troupe({"doctor", "--json"}, folder.path()).output);
  std::vector<std::string> names;
  for (const json& finding : findings) {
    names.push_back(finding.at("name"));
    CHECK_FALSE(finding.at("text").get<std::string>().empty());
  }
  for (const char* name :
       {"LibTorch", "MuJoCo", "CAF",        "ZeroMQ",        "Protobuf",    "CPU",     "memory",
        "OpenGL",   "models", "NCCL",       "videos",        "runs folder", "kernels", "threads",
        "load",     "clock",  "huge pages", "shared memory", "descriptors", "GPU"}) {
    CAPTURE(name);
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
  std::ofstream(folder.path() / "file") << "";
  const Outcome bad = run_troupe({"doctor", "--runs", "file"}, folder.path());
  CHECK(bad.exit_code == 1);
  CHECK(has(bad.last_line, "cannot be written"));
  CHECK(run_troupe({"doctor", "--models", "nowhere"}, folder.path()).exit_code == 1);
}

TEST_CASE("new writes a folder under a valid name and never replaces an existing one") {
  const TemporaryFolder folder;
  for (const char* kind : {"experiment", "environment", "agent", "cluster"}) {
    CAPTURE(kind);
    const std::string name = std::string("my_") + kind;
    const Outcome made = run_troupe({"new", kind, name}, folder.path());
    CHECK(made.exit_code == 0);
    CHECK(has(made.output, name + "/README.md\n  "));
    for (const auto& entry : fs::directory_iterator(folder.path() / name)) {
      const std::string text = read_text(entry.path());
      CAPTURE(entry.path());
      CHECK_FALSE(has(text, "own_" + std::string(kind)));
      CHECK_FALSE(has(text, "push_to_middle"));
      CHECK_FALSE(has(text, "PushToMiddle"));
      CHECK_FALSE(has(text, "own_td3"));
    }
    const Outcome again = run_troupe({"new", kind, name}, folder.path());
    CHECK(again.exit_code == 2);
    CHECK(has(again.last_line, "already exists"));
  }
  CHECK(has(read_text(folder.path() / "my_environment/my_environment.cpp"), "class MyEnvironment"));
  // A name may contain a word of the example.
  REQUIRE(run_troupe({"new", "agent", "my_own_td3"}, folder.path()).exit_code == 0);
  const fs::path agent = folder.path() / "my_own_td3";
  CHECK(fs::exists(agent / "my_own_td3.cpp"));
  CHECK(has(read_text(agent / "my_own_td3.textproto"),
            "name: \"my_own_td3\" plugin: \"build/libmy_own_td3.so\""));
  for (const char* name : {"", "Big", "9lives", "a/b", "../up", "with-dash", "a b"}) {
    CAPTURE(name);
    CHECK(run_troupe({"new", "cluster", name}, folder.path()).exit_code == 2);
  }
  CHECK(has(run_troupe({"new", "agnet", "x"}, folder.path()).last_line, "KIND"));
}

TEST_CASE("Keys are readable by their owner only, shown without the secret, and never replaced") {
  const TemporaryFolder folder;
  const Outcome made = run_troupe({"keys", "new", "here/keys"}, folder.path());
  CHECK(made.exit_code == 0);
  const auto secret = folder.path() / "here/keys/troupe.secret";
  CHECK((std::filesystem::status(secret).permissions() & std::filesystem::perms(077))
        == std::filesystem::perms::none);
  const std::string shown =
      run_troupe({"keys", "show", "here/keys/troupe.public"}, folder.path()).last_line;
  CHECK(shown == made.last_line);
  const Outcome of_secret = run_troupe({"keys", "show", secret.string()});
  CHECK(of_secret.last_line == shown);
  const std::string text = read_text(secret);
  const std::string key = text.substr(text.rfind("secret ") + 7, 40);
  REQUIRE(key.size() == 40);
  CHECK_FALSE(has(made.output, key));
  CHECK_FALSE(has(of_secret.output, key));
  const Outcome again = run_troupe({"keys", "new", "here/keys"}, folder.path());
  CHECK(again.exit_code == 2);
  CHECK(has(again.last_line, "is not replaced"));
  CHECK(has(run_troupe({"keys", "show", "nowhere"}, folder.path()).last_line, "troupe keys new"));
}

TEST_CASE("A deployment's keys are created, shown, checked and rotated, and no secret is printed") {
  const TemporaryFolder folder;
  const fs::path keys = folder.path() / "lab";
  std::string printed;
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "keys");
    const Outcome outcome = run_troupe(words, folder.path());
    printed += outcome.output;
    return outcome;
  };
  const auto secrets = [&] { // all long words of the secret files, which must not be printed
    std::vector<std::string> found;
    for (const char* name : {"ca.key", "node.pem", "curve.secret", "token"}) {
      std::istringstream text(read_text(keys / name));
      bool is_secret = std::string(name) != "node.pem"; // its first part is a certificate
      for (std::string word; text >> word;) {
        is_secret = is_secret || word == "PRIVATE";
        if (is_secret && word.size() >= 40)
          found.push_back(word);
      }
    }
    return found;
  };
  CHECK(run({"check", "lab"}).exit_code == 2);
  CHECK(has(run({"check", "lab"}).last_line, "troupe keys cluster"));
  CHECK(run({"cluster", "lab", "--days", "30"}).exit_code == 0);
  CHECK(run({"check", "lab"}).exit_code == 0);
  std::vector<std::string> secret = secrets();
  CHECK(secret.size() >= 6);
  const Outcome again = run({"cluster", "lab"});
  CHECK(again.exit_code == 2);
  CHECK(has(again.last_line, "already exists"));
  CHECK(has(run({"show", "lab"}).output, "sha256"));
  CHECK(run({"rotate", "lab", "--grace-hours", "1"}).exit_code == 0);
  CHECK(has(run({"show", "lab"}).output, "curve.retired"));
  CHECK(run({"rotate", "lab", "--days", "0"}).exit_code == 2);
  for (const std::string& word : secrets())
    secret.push_back(word);
  fs::permissions(keys / "token", fs::perms(0644));
  const Outcome open = run({"check", "lab"});
  CHECK(open.exit_code == 2);
  CHECK(has(open.last_line, "chmod 600"));
  for (const std::string& word : secret)
    CHECK_FALSE(has(printed, word));
}

TEST_CASE("A run that has no checkpoint or is in use is not resumed") {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& name) {
    return RunFolder::create(folder.path(), name, UtcTime{},
                             "environment { task: \"cartpole_balance\" } name: \"x\"");
  };
  const fs::path free = run("free").path();
  const Outcome none = run_troupe({"resume", free.string()});
  CHECK(none.exit_code == 2);
  CHECK(has(none.last_line, "has no complete checkpoint"));
  CHECK_FALSE(fs::exists(free / "metrics.csv"));
  const RunFolder held = run("held");
  const std::string config = read_text(held.path() / "config.textproto");
  const Outcome used = run_troupe({"resume", held.path().string()});
  CHECK(used.exit_code == 1);
  CHECK(has(used.last_line, "another process works on this run"));
  CHECK_FALSE(fs::exists(held.path() / "metrics.csv"));
  CHECK(read_text(held.path() / "config.textproto") == config);
}

// How many nodes one head can manage. Its supervisor gets --nodes simulated nodes, each with
// --actors environment actors, and a shard, a learner and an evaluator on some of them. The real
// SupervisorActor runs behind the real Remoting on the loopback interface, first without and then
// with a deployment's keys. Every node has its own actor system and connection in one of a few
// processes (simulated_nodes.hpp). As in every run, nodes send a heartbeat every second, which
// stands for all their processes, and count as lost after 15 s. With --nodes 1000 --actors 16 the
// goal is that 99% of the answers arrive within 100 ms while all send heartbeats. Measured:
//   - the time from the first connection until all nodes have joined and all roles are up;
//   - for --seconds of heartbeats from all: this process's CPU time per heartbeat; then, for the
//     same time, the latency of a request from another process to the supervisor;
//   - the time until the head notices that a fiftieth of the nodes fell silent (up to a second
//     after their last heartbeat);
//   - the time until the head notices that as many nodes were killed with their connections;
//   - the time until their roles run elsewhere, and until the nodes have joined again;
//   - this process's memory and descriptors with all of them.
// Simulated roles share their node's connection, so CAF's own heartbeats, one in five seconds over
// each connection of a real process, are not part of it.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "actors/remoting/descriptor_limit.hpp"
#include "actors/supervision/supervisor_actor.hpp"
#include "env/processes/child_process.hpp"
#include "experiments/bench/bench_folder.hpp"
#include "experiments/bench/run_listener.hpp"
#include "experiments/bench/simulated_nodes.hpp"

namespace troupe::experiments {
namespace {

using namespace actors;
using Key = Listener::Key;

constexpr int kProcesses = 4;

double now() {
  return Listener::now();
}

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<double>(std::distance(begin(all), end(all)));
}

struct Options {
  int nodes = 1000;
  int actors = 1; // per node
  double seconds = 20;
  std::string join{}; // the seat of a process that this program started
};

/// Prints one line of JSON with the median, the least and the greatest value.
void print(const Options& options, bool encrypted, const std::string& metric,
           std::vector<double> values, const std::string& unit) {
  std::sort(values.begin(), values.end());
  std::printf(R"({"bench": "cluster_scale", "metric": "%s", "value": %.6g, "minimum": %.6g, )"
              R"("maximum": %.6g, "unit": "%s", )"
              R"("config": {"nodes": "%d", "actors": "%d", "connections": "%s"}})"
              "\n",
              metric.c_str(), values[values.size() / 2], values.front(), values.back(),
              unit.c_str(), options.nodes, options.actors, encrypted ? "TLS" : "plain");
  std::fflush(stdout);
}

SupervisorOptions options_of(const Options& options, const caf::actor& listener,
                             const std::string& folder, std::uint16_t port) {
  RunConfig config;
  config.actors.environment = options.nodes * options.actors;
  config.actors.restarts = 1000;
  std::map<std::string, RoleNeeds> needs;
  for (const char* role : {"replay", "parameter_server", "learner", "environment", "evaluator"})
    needs[role] = {.cores = 1};
  DeploymentNodes deployment{.placer = Placer(needs), .join_seconds = 600};
  for (int i = 0; i < options.nodes; ++i)
    deployment.placer.add_node({.name = simulated_name(i), .known = false});
  return {.config = config,
          .transitions = {},
          .listener = listener,
          .deployment = {.nodes = std::move(deployment)},
          .config_file = folder + "/config.textproto",
          .head_port = port,
          .epoch = random_life()};
}

/// Plays the head in this process and the nodes in other processes.
class Trial {
public:
  Trial(const Options& options, const std::string& keys)
      : options_(options),
        keys_(keys),
        own_keys_(keys.empty()
                      ? nullptr
                      : std::make_shared<ClusterKeys>(read_cluster_keys(keys, WallClock::now()))),
        few_(std::max(1, options.nodes / 50)),
        config_(true),
        system_(config_),
        listener_(system_, options.nodes * options.actors),
        // The supervisor gets the port's number before the port exists.
        supervisor_(
            system_.spawn(supervisor_actor, options_of(options, listener_.handle(), ".", 1))),
        remoting_(system_, {.keys = own_keys_,
                            .on_stranger =
                                [this](const std::string& who) {
                                  std::fprintf(stderr, "refused: %s\n", who.c_str());
                                }}),
        port_(remoting_.publish(supervisor_, "127.0.0.1")) {}
  ~Trial() {
    children_.clear();
    mortal_.reset();
    caf::anon_send_exit(supervisor_, caf::exit_reason::kill);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  void run() {
    join();
    beat();
    fall_silent();
    break_off();
    come_back();
    const double begin = now();
    listener_.stop();
    tell("until all nodes have ended what ran on them", {now() - begin}, "s");
  }

private:
  std::unique_ptr<ChildProcess> child(int first, int count) const {
    return std::make_unique<ChildProcess>(
        "/proc/self/exe",
        std::vector<std::string>{"--join", seat_text({.head_port = port_,
                                                      .first = first,
                                                      .count = count,
                                                      .silent = first == few_ ? few_ : 0,
                                                      .actors = options_.actors,
                                                      .keys = keys_})});
  }

  void tell(const std::string& metric, std::vector<double> values, const std::string& unit) const {
    print(options_, !keys_.empty(), metric, std::move(values), unit);
  }

  static int number_of(const std::string& line) { // number of join attempts: 12 in "joined 12"
    if (!line.starts_with("joined "))
      throw std::runtime_error("unexpected line from a process of simulated nodes: \"" + line
                               + "\"");
    return std::stoi(line.substr(7));
  }

  /// Reads lines "role environment 3 12345.6" up to "end".
  static std::map<Key, double> roles_told(const ChildProcess& child) {
    std::map<Key, double> told;
    for (std::string line = child.line(); line != "end"; line = child.line()) {
      std::array<char, 32> role{};
      int index = 0;
      double when = 0;
      if (std::sscanf(line.c_str(), "role %31s %d %lf", role.data(), &index, &when) != 3)
        throw std::runtime_error("unexpected line from a process of simulated nodes: \"" + line
                                 + "\"");
      told[{role_named(role.data()), index}] = when;
    }
    return told;
  }

  /// The first few_ nodes belong to the process that will be killed; the next few_ fall silent.
  void join() {
    const double memory = resident_bytes(), cpu = cpu_seconds(), begin = now();
    mortal_ = child(0, few_);
    const int rest = options_.nodes - few_;
    for (int i = 0; i < kProcesses; ++i) {
      const int from = few_ + rest * i / kProcesses, to = few_ + rest * (i + 1) / kProcesses;
      if (to > from)
        children_.push_back(child(from, to - from));
    }
    listener_.begin(supervisor_);
    listener_.wait_until_up();
    tell("until all have joined and all roles are up", {now() - begin}, "s");
    tell("this process's CPU for that, per node", {1e3 * (cpu_seconds() - cpu) / options_.nodes},
         "ms");
    int tries = number_of(mortal_->line());
    for (const auto& one : children_)
      tries += number_of(one->line());
    tell("tries that a join took, mean", {static_cast<double>(tries) / options_.nodes}, "tries");
    tell("this process's memory, per node", {(resident_bytes() - memory) / options_.nodes},
         "bytes");
    tell("this process's descriptors", {descriptors()}, "descriptors");
  }

  void beat() {
    const double cpu = cpu_seconds(), begin = now();
    listener_.look(std::chrono::duration<double>(options_.seconds));
    const double seconds = now() - begin, used = cpu_seconds() - cpu;
    const double beats = seconds * options_.nodes / RunConfig::Supervision().heartbeat_seconds;
    tell("heartbeats while all beat", {beats / seconds}, "1/s");
    tell("this process's CPU while all beat", {used / seconds}, "cores");
    tell("this process's CPU per sign of life", {1e6 * used / beats}, "us");
    asker_ = child(0, 0);
    number_of(asker_->line());
    tell_answers(0); // from the start
    listener_.look(std::chrono::duration<double>(options_.seconds));
    tell_answers(1);
  }

  void tell_answers(int round) const {
    asker_->signal(SIGUSR2);
    const std::string line = asker_->line();
    double count = 0, half = 0, most_of_them = 0, most = 0;
    if (std::sscanf(line.c_str(), "asked %lf %lf %lf %lf", &count, &half, &most_of_them, &most)
        != 4)
      throw std::runtime_error("unexpected line from the querying process: \"" + line + "\"");
    if (round == 0)
      return;
    const std::string when = round == 1 ? "while all beat" : "while nodes are lost and come back";
    tell("an answer from the supervisor " + when + ", median", {half}, "ms");
    tell("an answer from the supervisor " + when + ", 99% within", {most_of_them}, "ms");
    tell("an answer from the supervisor " + when + ", longest", {most}, "ms");
    tell("answers from the supervisor " + when, {count}, "answers");
  }

  void tell_loss(const std::string& what, const std::map<Key, double>& since) {
    std::set<Key> whom;
    for (const auto& [key, when] : since)
      whom.insert(key);
    const auto lost = listener_.wait_until_lost(whom);
    std::vector<double> took;
    for (const auto& [key, when] : since)
      took.push_back(lost.at(key) - when);
    listener_.wait_until_up();
    if (!took.empty())
      tell(what + ": until the head notices", took, "s");
    double first = now();
    for (const auto& [key, when] : since)
      first = std::min(first, when);
    tell(what + ": until all that ran there is up elsewhere", {now() - first}, "s");
    if (lost.size() != since.size())
      throw std::runtime_error(std::to_string(lost.size()) + " were lost, but "
                               + std::to_string(since.size()) + " were on nodes that were");
  }

  void fall_silent() {
    listener_.forget();
    children_.front()->signal(SIGUSR1);
    tell_loss("nodes that fall silent", roles_told(*children_.front()));
  }

  void break_off() {
    listener_.forget();
    mortal_->signal(SIGUSR2);
    auto there = roles_told(*mortal_);
    for (auto& [key, when] : there)
      when = now();
    mortal_->kill();
    tell_loss("nodes that are killed", there);
  }

  void come_back() {
    const double begin = now();
    mortal_ = child(0, few_);
    children_.front()->signal(SIGUSR1);
    number_of(mortal_->line());
    number_of(children_.front()->line());
    tell("until they have joined in their next life", {now() - begin}, "s");
    tell_answers(2);
  }

  const Options& options_;
  std::string keys_;
  std::shared_ptr<const ClusterKeys> own_keys_;
  int few_;
  SystemConfig config_;
  caf::actor_system system_;
  Listener listener_;
  SupervisorActor supervisor_;
  Remoting remoting_;
  std::uint16_t port_;
  std::unique_ptr<ChildProcess> mortal_, asker_;
  std::vector<std::unique_ptr<ChildProcess>> children_;
};

/// Runs the trial without, then with encryption.
void run_trials(const Options& options) {
  raise_descriptor_limit(); // as a head does
  const BenchFolder folder;
  make_cluster_keys(folder.path / "keys", WallClock::now());
  for (const std::string& keys : {std::string(), (folder.path / "keys").string()})
    Trial(options, keys).run();
}

} // namespace
} // namespace troupe::experiments

int main(int count, char** words) {
  using namespace troupe::experiments;
  CLI::App app("Measures how many nodes one head can handle: simulated nodes and a real "
               "supervisor; prints one JSON object per line");
  Options options;
  app.footer("Example: cluster_scale --nodes 1000 --actors 16 --seconds 30 > beats.jsonl");
  app.add_option("--nodes", options.nodes, "simulated nodes")
      ->check(CLI::Range(10, 20'000))
      ->capture_default_str();
  app.add_option("--actors", options.actors, "environment actors per node")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "length of the phase with nothing but heartbeats")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str();
  app.add_option("--join", options.join,
                 "simulate some of a head's nodes (PORT:FIRST:COUNT:SILENT:ACTORS:KEYS); without "
                 "COUNT, query the "
                 "head at that port continuously and print the response times at SIGUSR2");
  CLI11_PARSE(app, count, words);
  try {
    if (options.join.empty())
      run_trials(options);
    else
      play_simulated_seat(parse_simulated_seat(options.join));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cluster_scale: %s\n", error.what());
    return 1;
  }
  return 0;
}

#include "experiments/launchers/mpi_launcher.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "env/text/number_in.hpp"
#include "experiments/launchers/command_text.hpp"

namespace troupe::experiments::launchers {
namespace {

using Clock = ChildProcesses::Clock;
constexpr std::string_view kMpiWord = "troupe-mpi-node ";
constexpr std::chrono::seconds kMpiGoodBye{10};   // time for mpirun to end the remaining nodes
constexpr std::chrono::milliseconds kMpiLook{50}; // between checks whether mpirun has ended
constexpr const char* kKill =
    "2"; // seconds between mpirun's SIGTERM and SIGKILL; it always waits that long
// mpirun ends a job when one of its processes is killed, so this script outlives its node and
// reports the node's end. SIGUSR1, which mpirun forwards to all processes, stops the node. A `wait`
// that a signal interrupts returns the signal's exit code; the next `wait` returns the node's, even
// if the node is gone (127 if the shell has already reported it).
constexpr const char* kNode = R"sh(trap 'again=1' TERM
trap 'again=1; told=1; kill -TERM $node' USR1
echo "troupe-mpi-node started"
exec 4>&2 2>/dev/null
(trap '' USR1; exec "$@") 2>&4 4>&- &
node=$!
[ -z "$told" ] || kill -TERM "$node"
code=
while again=
  wait "$node"; last=$?
  [ -n "$code" ] && [ "$last" = 127 ] || code=$last
  [ -n "$again" ]
do :; done
echo "troupe-mpi-node ended $code"
exit 0)sh";

/// Parses the output of `--tag-output`: "[1,2]<stdout>:text" -> 2, "text"
std::optional<std::pair<std::size_t, std::string_view>> tagged(std::string_view line) {
  const std::size_t comma = line.find(',');
  const std::size_t close = line.find("]<std", comma);
  const std::size_t colon = line.find(">:", close);
  if (!line.starts_with("[") || colon == std::string_view::npos)
    return std::nullopt;
  const auto rank = env::number_in<std::size_t>(line.substr(comma + 1, close - comma - 1));
  if (!rank)
    return std::nullopt;
  return std::pair{*rank, line.substr(colon + 2)};
}

} // namespace

std::vector<std::string> read_hostfile(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<std::string> hosts;
  for (std::string line; std::getline(in, line);) {
    std::string host;
    std::istringstream(line.substr(0, line.find('#'))) >> host;
    if (!host.empty())
      hosts.push_back(host.substr(host.find('@') == std::string::npos ? 0 : host.find('@') + 1));
  }
  if (hosts.empty())
    throw std::invalid_argument(
        std::string("mpi.hostfile is \"") + file.string()
        + "\"; it must be a file with a host in each line; write one, or give the nodes addresses");
  return hosts;
}

struct MpiLauncher::Job {
  struct Node {
    NodeStart start;
    bool started = false;
    bool told = false; // whether poll() has reported its end
    std::optional<int> exit_code = {};
    std::string last_line = {};
  };
  std::vector<std::string> words;
  ChildProcesses::Id id = 0;
  std::mutex mutex; // guards `nodes`
  std::condition_variable changed;
  std::vector<Node> nodes; // by rank

  bool take_line(std::string_view line, const LaunchSettings& settings);
};

bool MpiLauncher::Job::take_line(std::string_view line, const LaunchSettings& settings) {
  const auto found = tagged(line);
  if (!found || found->first >= nodes.size()) {
    if (settings.output)
      settings.output("mpirun", line);
    return true;
  }
  Node& node = nodes[found->first];
  const auto text = found->second;
  if (!text.starts_with(kMpiWord)) {
    {
      const std::lock_guard lock(mutex);
      node.last_line = text;
    }
    if (settings.output)
      settings.output(node.start.name, text);
    return true;
  }
  const std::lock_guard lock(mutex);
  node.started = true;
  if (const auto rest = text.substr(kMpiWord.size()); rest.starts_with("ended ")) {
    int code = 1;
    std::from_chars(rest.data() + 6, rest.data() + rest.size(), code);
    node.exit_code = code;
  }
  changed.notify_all();
  return false;
}

MpiLauncher::MpiLauncher(LaunchSettings settings, MpiSettings mpi)
    : settings_(std::move(settings)), mpi_(std::move(mpi)) {
  mpi_.mpirun = find_program(mpi_.mpirun, "mpi.mpirun", "install openmpi-bin, or name its path");
  if (mpi_.program.empty())
    mpi_.program = settings_.program.string();
  const auto set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (::geteuid() == 0 && !(set("OMPI_ALLOW_RUN_AS_ROOT") && set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")))
    throw std::invalid_argument(
        "mpirun refuses to run as root; run as another user, or set OMPI_ALLOW_RUN_AS_ROOT=1 and "
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 yourself where that is safe");
}

MpiLauncher::~MpiLauncher() {
  stop(std::chrono::milliseconds(0));
}

std::vector<std::string> MpiLauncher::words(const std::vector<NodeStart>& nodes) const {
  std::vector<std::string> words{mpi_.mpirun, "--tag-output",    "--bind-to",
                                 "none",      "--oversubscribe", "--stdin",
                                 "none",      "--mca",           "odls_base_sigkill_timeout",
                                 kKill};
  words.insert(words.end(), mpi_.options.begin(), mpi_.options.end());
  bool first = true;
  for (const NodeStart& node : nodes) {
    if (!first)
      words.emplace_back(":");
    first = false;
    words.insert(words.end(),
                 {"-np", "1", "--host", node.host, "env", "TROUPE_NODE_NAME=" + node.name});
    for (const auto& [name, value] : settings_.environment)
      words.push_back(name + "=" + value);
    words.insert(words.end(), {"bash", "-c", kNode, "troupe-node", mpi_.program});
    words.insert(words.end(), node.arguments.begin(), node.arguments.end());
  }
  return words;
}

void MpiLauncher::start_nodes(const std::vector<NodeStart>& nodes, const std::stop_token& ended) {
  for (const NodeStart& node : nodes)
    if (node.host.empty() || node.host.starts_with("-") || node.host.find(',') != std::string::npos)
      throw std::invalid_argument(std::string("the address of node ") + node.name + " is \""
                                  + node.host
                                  + "\"; mpirun needs a host name or address: give the node an "
                                    "address, or name mpi.hostfile");
  if (nodes.empty())
    return;
  const std::size_t before = jobs_.size();
  if (!std::exchange(started_, true))
    start_job(nodes);
  else
    for (const NodeStart& node : nodes)
      start_job({node});
  const std::vector begun(jobs_.begin() + static_cast<std::ptrdiff_t>(before), jobs_.end());
  const auto deadline = Clock::now() + mpi_.start_limit;
  for (const auto& job : begun)
    wait_for_start(*job, deadline, ended);
}

void MpiLauncher::start_job(const std::vector<NodeStart>& nodes) {
  auto job = std::make_shared<Job>();
  job->words = words(nodes);
  for (const NodeStart& node : nodes)
    job->nodes.push_back({.start = node});
  try {
    job->id = children_.start({.words = job->words, .line = [this, job](std::string_view line) {
                                 return job->take_line(line, settings_);
                               }});
  } catch (const std::runtime_error& error) { // other nodes of this call may run already
    end_job(*job, {.how = std::string("could not be started: ") + error.what()});
    return;
  }
  jobs_.push_back(job);
}

void MpiLauncher::wait_for_start(Job& job, Clock::time_point deadline,
                                 const std::stop_token& ended) {
  const auto all = [&] {
    return std::all_of(job.nodes.begin(), job.nodes.end(),
                       [](const Job::Node& node) { return node.started; });
  };
  while (true) {
    std::optional<ChildProcesses::End> end;
    {
      std::unique_lock lock(job.mutex);
      if (job.changed.wait_for(lock, kMpiLook, all))
        return;
      if (ended.stop_requested()) {
        if (std::none_of(job.nodes.begin(), job.nodes.end(),
                         [](const Job::Node& node) { return node.started; }))
          children_.kill_group(job.id);
        return;
      }
    }
    bool late = false;
    end = children_.wait(job.id, Clock::now());
    if (!end && Clock::now() >= deadline) {
      late = true;
      children_.kill_group(job.id);
      end = children_.wait(job.id, Clock::now() + kMpiGoodBye);
    }
    if (!end)
      continue;
    if (late)
      end->how = std::string("had not started all nodes after ")
                 + std::to_string(mpi_.start_limit.count() / 1000) + " s";
    end_job(job, *end);
    std::erase_if(jobs_, [&](const auto& other) { return other.get() == &job; });
    return;
  }
}

/// Collects the nodes that have ended by themselves.
void MpiLauncher::take_ends(Job& job) {
  const std::lock_guard lock(job.mutex);
  for (Job::Node& node : job.nodes) {
    if (!node.exit_code || std::exchange(node.told, true))
      continue;
    ended_.push_back(shell_end(node.start, *node.exit_code, node.last_line));
  }
}

void MpiLauncher::end_job(Job& job, const ChildProcesses::End& end) {
  take_ends(job);
  const std::lock_guard lock(job.mutex);
  for (Job::Node& node : job.nodes)
    if (!std::exchange(node.told, true)) {
      NodeEnd told = node_end(node.start, job.words, end);
      told.good = false; // a node that ended well would have reported it
      ended_.push_back(std::move(told));
    }
}

std::vector<NodeEnd> MpiLauncher::poll() {
  std::erase_if(jobs_, [this](const std::shared_ptr<Job>& job) {
    const auto end = children_.wait(job->id, Clock::now());
    if (end)
      end_job(*job, *end);
    else
      take_ends(*job);
    return end.has_value();
  });
  return std::exchange(ended_, {});
}

void MpiLauncher::stop(std::chrono::milliseconds grace) {
  for (const auto& job : jobs_)
    children_.send(job->id, SIGUSR1); // mpirun ends once all its nodes have
  const auto deadline = Clock::now() + grace;
  for (const auto& job : jobs_) {
    auto end = children_.wait(job->id, deadline);
    if (!end) {
      children_.send(job->id, SIGTERM); // mpirun kills the remaining nodes
      end = children_.wait(job->id, Clock::now() + kMpiGoodBye);
    }
    if (!end)
      end = children_.kill_and_wait(job->id); // mpirun's daemons end what they started
    end_job(*job, *end);
  }
  jobs_.clear();
}

} // namespace troupe::experiments::launchers

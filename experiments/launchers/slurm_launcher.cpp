#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "experiments/launchers/command_text.hpp"
#include "experiments/launchers/slurm.hpp"

namespace troupe::experiments::launchers {
namespace {

using Clock = ChildProcesses::Clock;
constexpr std::chrono::seconds kSlurmLongestCall{60}; // time limit of scancel
constexpr std::chrono::milliseconds kSlurmLook{50};   // between checks whether srun has ended
constexpr std::string_view kSlurmWord = "troupe-slurm-task ";
// Reports the step and Slurm node of a task, runs the node that ",host=name,…" lists for it, and
// reports the node's end. The end of standard input stops the node, and so does Slurm's own
// SIGTERM, which the shell survives. A `wait` that a signal interrupts returns the signal's exit
// code; the next `wait` returns the node's, even if the node is gone (127 if the shell has already
// reported it).
constexpr const char* kTask = R"sh(trap 'again=1' TERM
say=troupe-slurm-task
echo "$say started $SLURM_JOB_ID.$SLURM_STEP_ID $SLURMD_NODENAME"
name=${1#*",$SLURMD_NODENAME="}
shift
exec 3<&0 4>&2 2>/dev/null
TROUPE_NODE_NAME=${name%%,*} "$@" 3<&- </dev/null 2>&4 4>&- &
node=$!
{ while read -r -u 3 _; do :; done; kill -TERM "$node"; } >/dev/null 4>&- &
watcher=$!
code=
while again=
  wait "$node"; last=$?
  [ -n "$code" ] && [ "$last" = 127 ] || code=$last
  [ -n "$again" ]
do :; done
kill -KILL "$watcher"
echo "$say ended $code"
exit 0)sh";

} // namespace

struct SlurmLauncher::Step {
  struct Task {
    std::string host = {};
    std::string last_line = {};
    std::optional<int> exit_code = {};
  };
  struct TaskEnd { // as reported by srun
    std::vector<std::string> hosts = {};
    std::string how = {};
  };
  std::vector<NodeStart> nodes;             // not ended; used only by the launcher's thread
  std::map<std::string, std::string> names; // names of all its nodes, by host
  std::vector<std::string> words;
  ChildProcesses::Id id = 0;
  std::mutex mutex; // guards the members below
  std::condition_variable changed;
  std::string step;                  // "12.0"; set once a task runs
  std::map<std::string, Task> tasks; // tasks that have begun, by number
  std::deque<TaskEnd> ends;

  bool take_line(std::string_view line, const LaunchSettings& settings);
  bool take_word(const std::string& number, const std::string& text);
  std::optional<std::string> name_on(const std::string& host) const;
  void take_error(std::string_view line);
  std::optional<NodeEnd> end_of(const NodeStart& node) const; // call it with the mutex locked
};

/// Handles a line from a task ("0: what task 0 says", as of `srun --label`) or from srun itself.
bool SlurmLauncher::Step::take_line(std::string_view line, const LaunchSettings& settings) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t colon = line.find(": ");
  const auto number = line.substr(first, colon == std::string_view::npos ? 0 : colon - first);
  if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos) {
    take_error(line);
    if (settings.output)
      settings.output(names.size() == 1 ? names.begin()->second : "srun", line);
    return true;
  }
  const auto text = line.substr(colon + 2);
  std::string name;
  {
    const std::lock_guard lock(mutex);
    if (text.starts_with(kSlurmWord))
      return take_word(std::string(number), std::string(text.substr(kSlurmWord.size())));
    Task& task = tasks[std::string(number)];
    name = name_on(task.host).value_or("task " + std::string(number));
    task.last_line = text;
  }
  if (settings.output)
    settings.output(name, text);
  return true;
}

std::optional<std::string> SlurmLauncher::Step::name_on(const std::string& host) const {
  const auto found = names.find(host);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

/// Handles "started 12.0 node1" or "ended 3". Call it with the mutex locked.
bool SlurmLauncher::Step::take_word(const std::string& number, const std::string& text) {
  std::istringstream in(text);
  std::string what;
  Task& task = tasks[number];
  in >> what;
  if (what == "started")
    in >> step >> task.host;
  int code = 0;
  if (what == "ended" && in >> code)
    task.exit_code = code;
  changed.notify_all();
  return false;
}

/// Prefers the end that the node's task reported.
std::optional<NodeEnd> SlurmLauncher::Step::end_of(const NodeStart& node) const {
  for (const auto& [number, task] : tasks)
    if (task.host == node.host && task.exit_code)
      return shell_end(node, *task.exit_code, task.last_line);
  return std::nullopt;
}

/// "srun: error: node[1-2]: tasks 0-1: Exited with exit code 3"
void SlurmLauncher::Step::take_error(std::string_view line) {
  constexpr std::string_view kBegin = "srun: error: ";
  if (!line.starts_with(kBegin))
    return;
  const auto rest = line.substr(kBegin.size());
  const std::size_t task = rest.find(": task");
  const std::size_t how = task == std::string_view::npos ? task : rest.find(": ", task + 2);
  if (how == std::string_view::npos)
    return;
  try {
    const std::lock_guard lock(mutex);
    ends.push_back(
        {.hosts = parse_node_list(rest.substr(0, task)), .how = std::string(rest.substr(how + 2))});
  } catch (const std::invalid_argument&) { // a different message
  }
}

SlurmLauncher::SlurmLauncher(LaunchSettings settings, std::chrono::milliseconds start_limit)
    : settings_(std::move(settings)),
      start_limit_(start_limit),
      srun_(find_program("srun", "the Slurm launcher", "install slurm-client")),
      scancel_(find_program("scancel", "the Slurm launcher", "install slurm-client")) {
  auto nodes = allocated_nodes();
  if (!nodes)
    throw std::invalid_argument("SLURM_JOB_ID is not set: this process is not in a Slurm "
                                "allocation; start it in a batch script or with salloc");
  allocated_ = std::move(*nodes);
}

SlurmLauncher::~SlurmLauncher() {
  stop(std::chrono::milliseconds(0));
}

void SlurmLauncher::start_nodes(const std::vector<NodeStart>& nodes, const std::stop_token& ended) {
  std::map<std::vector<std::string>, std::vector<NodeStart>> alike;
  for (const NodeStart& node : nodes) {
    if (std::find(allocated_.begin(), allocated_.end(), node.host) == allocated_.end())
      throw std::invalid_argument(std::string("node ") + node.name + " is on \"" + node.host
                                  + "\", which is not among the "
                                  + std::to_string(allocated_.size())
                                  + " nodes of this Slurm job (SLURM_JOB_NODELIST); ask for more "
                                    "nodes, or another placement");
    alike[node.arguments].push_back(node);
  }
  std::vector<std::shared_ptr<Step>> begun;
  for (const auto& [arguments, group] : alike) {
    start_step(group);
    begun.push_back(steps_.back());
  }
  for (const auto& step : begun)
    wait_for_start(*step, ended);
}

/// Waits until the nodes have started, up to the time limit. poll() reports nodes that Slurm has
/// not started by then and steps that have ended.
void SlurmLauncher::wait_for_start(Step& step, const std::stop_token& ended) {
  const auto deadline = Clock::now() + start_limit_;
  std::unique_lock lock(step.mutex);
  while (!step.changed.wait_for(lock, kSlurmLook,
                                [&] { return step.tasks.size() >= step.nodes.size(); })) {
    lock.unlock();
    if (const auto end = children_.wait(step.id, Clock::now())) {
      end_step(step, *end);
      std::erase_if(steps_, [&](const auto& other) { return other.get() == &step; });
      return;
    }
    lock.lock();
    const bool stops = ended.stop_requested();
    if (Clock::now() < deadline && !stops)
      continue;
    if (step.tasks.empty())
      children_.kill_group(step.id); // Slurm then gives up the step
    if (stops)
      return;
    std::erase_if(step.nodes, [&](const NodeStart& node) {
      for (const auto& [number, task] : step.tasks)
        if (task.host == node.host)
          return false;
      ended_.push_back(node_end(node, step.words,
                                {.how = std::string("had not started it after ")
                                        + std::to_string(start_limit_.count() / 1000) + " s"}));
      return true;
    });
    return;
  }
}

void SlurmLauncher::start_step(const std::vector<NodeStart>& nodes) {
  auto step = std::make_shared<Step>();
  step->nodes = nodes;
  for (const NodeStart& node : nodes)
    step->names[node.host] = node.name;
  const std::string count = std::to_string(nodes.size());
  std::string hosts;
  std::string names = ",";
  for (const NodeStart& node : nodes) {
    hosts += (hosts.empty() ? "" : ",") + node.host;
    names += node.host + "=" + node.name + ",";
  }
  step->words = {srun_,
                 "--nodes=" + count,
                 "--ntasks=" + count,
                 "--ntasks-per-node=1",
                 "--nodelist=" + hosts,
                 "--overlap",
                 "--kill-on-bad-exit=0",
                 "--no-kill",
                 "--wait=0",
                 "--input=all",
                 "--mpi=none",
                 "--cpu-bind=none",
                 "--label",
                 "--unbuffered",
                 "bash",
                 "-c",
                 kTask,
                 "troupe-node",
                 names,
                 settings_.program.string()};
  step->words.insert(step->words.end(), nodes[0].arguments.begin(), nodes[0].arguments.end());
  std::vector<std::string> environment;
  for (const auto& [name, value] : settings_.environment)
    environment.push_back(name + "=" + value);
  step->id = children_.start(
      {.words = step->words,
       .environment = std::move(environment),
       .input = true,
       .line = [this, step](std::string_view line) { return step->take_line(line, settings_); }});
  steps_.push_back(std::move(step));
}

/// Collects the nodes whose end the task or srun has reported.
void SlurmLauncher::take_ends(Step& step) {
  const std::lock_guard lock(step.mutex);
  std::erase_if(step.nodes, [&](const NodeStart& node) {
    auto end = step.end_of(node);
    for (const Step::TaskEnd& told : step.ends)
      if (!end && std::find(told.hosts.begin(), told.hosts.end(), node.host) != told.hosts.end())
        end = node_end(node, step.words, {.how = std::string("failed: ") + told.how});
    if (end)
      ended_.push_back(std::move(*end));
    return end.has_value();
  });
  step.ends.clear();
}

void SlurmLauncher::end_step(Step& step, const ChildProcesses::End& end) {
  take_ends(step);
  for (const NodeStart& node : step.nodes) {
    ended_.push_back(node_end(node, step.words, end));
    ended_.back().good = false; // a node that ended well would have reported it
  }
  step.nodes.clear();
}

std::vector<NodeEnd> SlurmLauncher::poll() {
  std::erase_if(steps_, [this](const std::shared_ptr<Step>& step) {
    const auto end = children_.wait(step->id, Clock::now());
    if (end)
      end_step(*step, *end);
    else
      take_ends(*step);
    return end.has_value();
  });
  return std::exchange(ended_, {});
}

void SlurmLauncher::stop(std::chrono::milliseconds grace) {
  for (const auto& step : steps_)
    children_.close_input(step->id);
  const auto deadline = Clock::now() + grace;
  for (const auto& step : steps_) {
    auto end = children_.wait(step->id, deadline);
    if (!end && !step->step.empty()) { // no lock: no more tasks start and change `step`
      run_to_end(children_, {.words = {scancel_, "--signal=KILL", step->step}},
                 Clock::now() + kSlurmLongestCall);
      end = children_.wait(step->id, Clock::now() + kSlurmLongestCall);
    }
    if (!end)
      end = children_.kill_and_wait(step->id); // Slurm ends the tasks of a dead srun
    end_step(*step, *end);
  }
  steps_.clear();
}

} // namespace troupe::experiments::launchers

#include "experiments/commands/running/actor_launcher.hpp"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <sstream>
#include <stdexcept>

#include "env/processes/exec_words.hpp"
#include "env/processes/forked.hpp"
#include "experiments/commands/running/head_watch.hpp"
#include "experiments/run_folder/run_logs.hpp"

namespace troupe::experiments::commands {
namespace {

/// The arguments of a child, prepared before the fork.
struct Prepared {
  std::vector<std::string> words;
  std::vector<std::string> variables; // the complete environment, as "NAME=value"
  cpu_set_t cores{};                  // the child's CPU affinity
  bool pinned = false;
  int end_signal = SIGKILL;  // sent to the child when the parent ends
  std::filesystem::path log; // receives the child's output
};

int fork_actor(const Prepared& prepared, RoleOutput& printed) {
  const std::vector<char*> arguments = exec_words(prepared.words);
  const std::vector<char*> variables = exec_words(prepared.variables);
  const int output = printed.attach(prepared.log);
  const pid_t child = start_child(prepared.end_signal, [&] {
    if (prepared.pinned) {
      ::sched_setaffinity(0, sizeof prepared.cores, &prepared.cores); // else it may run on any core
    }
    if (output >= 0) {
      ::dup2(output, STDOUT_FILENO);
      ::dup2(output, STDERR_FILENO);
    }
    ::execve("/proc/self/exe", arguments.data(), variables.data());
    ::_exit(127);
  });
  if (output >= 0) {
    ::close(output);
  }
  if (child < 0) {
    throw std::runtime_error(std::string("cannot start a process for an actor: ")
                             + std::strerror(errno));
  }
  return child;
}

/// The words of CUDA_VISIBLE_DEVICES that stand for these of the visible GPUs. Throws
/// std::invalid_argument if the variable has fewer words.
std::string words_of_gpus(const std::vector<int>& gpus, const std::string& visible) {
  std::vector<std::string> words;
  std::istringstream in(visible);
  for (std::string word; std::getline(in, word, ',');) {
    words.push_back(word);
  }
  std::string list;
  for (const int gpu : gpus) {
    if (gpu < 0 || static_cast<std::size_t>(gpu) >= words.size()) {
      throw std::invalid_argument("CUDA_VISIBLE_DEVICES is \"" + visible + "\", which has no GPU "
                                  + std::to_string(gpu)
                                  + ", counted from 0; make more GPUs visible, or assign fewer "
                                    "(node.gpus, node.numa.gpu)");
    }
    list += (list.empty() ? "" : ",") + words[static_cast<std::size_t>(gpu)];
  }
  return list;
}

Prepared prepare(const actors::ProcessOrder& order, const std::filesystem::path& config,
                 const std::filesystem::path& keys, int keeper) {
  Prepared made{.words = {"troupe", "actor", "--role", order.role, "--index",
                          std::to_string(order.index), "--epoch", std::to_string(order.epoch),
                          "--incarnation", std::to_string(order.incarnation), "--head-host",
                          order.head_host, "--head-port", std::to_string(order.head_port),
                          "--address", order.address, "--config", config.string()},
                .variables = role_variables(order.gpus, ::environ),
                .log = role_log(config.parent_path(), order.role, order.index)};
  if (!keys.empty()) {
    made.words.insert(made.words.end(), {"--keys", keys.string()});
  }
  if (keeper > 0) {
    made.words.insert(made.words.end(), {"--keeper", std::to_string(keeper)});
    made.end_signal = kParentEnded;
  }
  CPU_ZERO(&made.cores);
  for (const int core : order.cores) {
    if (core < CPU_SETSIZE) {
      CPU_SET(core, &made.cores);
      made.pinned = true;
    }
  }
  return made;
}

} // namespace

std::vector<std::string> role_variables(const std::vector<int>& gpus,
                                        const char* const* inherited) {
  const std::string visible = "CUDA_VISIBLE_DEVICES=", order = "CUDA_DEVICE_ORDER=";
  std::vector<std::string> made;
  std::string list;
  bool has_list = false, has_order = false;
  for (; *inherited != nullptr; ++inherited) {
    const std::string variable = *inherited;
    if (gpus.empty() || !variable.starts_with(visible)) {
      made.push_back(variable);
      has_order = has_order || variable.starts_with(order);
    } else {
      has_list = true;
      list = words_of_gpus(gpus, variable.substr(visible.size()));
    }
  }
  if (gpus.empty()) {
    return made;
  }
  for (std::size_t i = 0; i < gpus.size() && !has_list; ++i) {
    list += (i == 0 ? "" : ",") + std::to_string(gpus[i]);
  }
  made.push_back(visible + list);
  if (!has_order) {
    made.push_back(order + "PCI_BUS_ID");
  }
  return made;
}

ActorLauncher::ActorLauncher(std::filesystem::path config_file, std::filesystem::path keys,
                             std::string node, int keeper)
    : config_file_(std::move(config_file)),
      keys_(std::move(keys)),
      keeper_(keeper),
      output_(std::move(node)),
      thread_([this](const std::stop_token& ended) { work(ended); }) {}

ActorLauncher::~ActorLauncher() = default; // joins the thread first, because it is the last member

void ActorLauncher::work(const std::stop_token& ended) {
  while (true) {
    std::function<void()> request;
    {
      std::unique_lock lock(mutex_);
      if (!ready_.wait(lock, ended, [this] { return !requests_.empty(); })) {
        return;
      }
      request = std::move(requests_.front());
      requests_.pop();
    }
    request();
  }
}

int ActorLauncher::start(const actors::ProcessOrder& order) {
  auto task = std::make_shared<std::packaged_task<int()>>([&] {
    return fork_actor(
        prepare(order, order.config.empty() ? config_file_ : order.config, keys_, keeper_),
        output_);
  });
  auto child = task->get_future();
  {
    const std::lock_guard lock(mutex_);
    requests_.emplace([task] { (*task)(); });
  }
  ready_.notify_one();
  return child.get();
}

} // namespace troupe::experiments::commands

#include "experiments/commands/actor_launcher.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <stdexcept>
#include <vector>

namespace troupe::experiments::commands {
namespace {

int fork_actor(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    throw std::runtime_error(std::string("cannot start a process for an actor: ")
                             + std::strerror(errno));
  }
  if (child == 0) { // only async-signal-safe calls from here to exec
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(1); // the parent ended before the line above
    }
    ::execv("/proc/self/exe", arguments.data());
    ::_exit(127);
  }
  return child;
}

} // namespace

ActorLauncher::ActorLauncher(std::filesystem::path config_file)
    : config_file_(std::move(config_file)),
      thread_([this](const std::stop_token& ended) { work(ended); }) {}

ActorLauncher::~ActorLauncher() = default; // the thread is joined first: it is the last member

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
    return fork_actor({"troupe", "actor", "--role", order.role, "--index",
                       std::to_string(order.index), "--epoch", std::to_string(order.epoch),
                       "--incarnation", std::to_string(order.incarnation), "--head-host",
                       order.head_host, "--head-port", std::to_string(order.head_port), "--config",
                       config_file_.string()});
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

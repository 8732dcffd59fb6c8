#include "experiments/commands/node_launcher.hpp"

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

int fork_node(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    throw std::runtime_error(std::string("cannot start a node: ") + std::strerror(errno));
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

NodeLauncher::NodeLauncher(std::filesystem::path config_file)
    : config_file_(std::move(config_file)),
      thread_([this](const std::stop_token& ended) { work(ended); }) {}

NodeLauncher::~NodeLauncher() = default; // the thread is joined first: it is the last member

void NodeLauncher::work(const std::stop_token& ended) {
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

int NodeLauncher::start(const std::string& role, int index, std::uint16_t head_port) {
  auto task = std::make_shared<std::packaged_task<int()>>([&] {
    return fork_node({"troupe", "node", "--role", role, "--index", std::to_string(index),
                      "--head-port", std::to_string(head_port), "--config", config_file_.string()});
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

#include "experiments/launchers/ssh_launcher.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "experiments/launchers/command_text.hpp"
#include "experiments/launchers/host_files.hpp"
#include "experiments/launchers/host_session.hpp"

namespace troupe::experiments::launchers {
namespace {

using Clock = ChildProcesses::Clock;
using Sessions = std::vector<std::shared_ptr<HostSession>>;
constexpr std::size_t kHostsAtOnce = 32; // hosts to connect to, copy to or clean up at once
constexpr std::chrono::seconds kSshGoodBye{
    10}; // time for a host's last output, after the grace period

/// Calls what(i) for each i < count, several at a time.
template <typename What>
void for_each_at_once(std::size_t count, const What& what) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(count, kHostsAtOnce); ++i)
    threads.emplace_back([&] {
      for (std::size_t mine = next++; mine < count; mine = next++)
        what(mine);
    });
}

void check_word(const std::string& word, const std::string& what) {
  if (word.find('\n') != std::string::npos || word.find('\0') != std::string::npos)
    throw std::invalid_argument(std::string(what) + " is \"" + word + "\"; it must be one line");
}

void check_host(const NodeStart& node) {
  check_word(node.host, "the address of node " + node.name);
  if (node.host.empty() || node.host.starts_with("-"))
    throw std::invalid_argument(std::string("the address of node ") + node.name + " is \""
                                + node.host
                                + "\"; ssh needs a host name or address: give the node an address");
  for (const std::string& word : node.arguments)
    check_word(word, "an argument of node " + node.name);
}

} // namespace

SshLauncher::SshLauncher(LaunchSettings settings, SshSettings ssh)
    : settings_(std::move(settings)), ssh_(std::move(ssh)) {
  ssh_.ssh = find_program(ssh_.ssh, "the SSH launcher", "install openssh-client");
  check_word(std::filesystem::current_path().string(), "the working folder, where nodes start,");
  check_word(ssh_.program, "ssh.program");
  check_word(ssh_.folder, "ssh.folder");
  if (!ssh_.folder.starts_with("/"))
    throw std::invalid_argument(std::string("ssh.folder is \"") + ssh_.folder
                                + "\"; it must be an absolute path");
  for (const auto& [name, value] : settings_.environment)
    check_word(name + "=" + value, "the nodes' environment");
  beats_ = std::jthread([this](const std::stop_token& ended) { beat(ended); });
}

SshLauncher::~SshLauncher() {
  stop(std::chrono::milliseconds(0));
}

void SshLauncher::beat(const std::stop_token& ended) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!never.wait_for(lock, ended, ssh_.lost / 4, [] { return false; })
         && !ended.stop_requested()) {
    const std::lock_guard sessions_lock(mutex_);
    for (const auto& session : sessions_)
      session->beat();
  }
}

void SshLauncher::start_nodes(const std::vector<NodeStart>& nodes, const std::stop_token& ended) {
  for (const NodeStart& node : nodes)
    check_host(node);
  // Read at each start, because the files may have changed since, for example rotated keys.
  const HostFiles files(children_, settings_.program, ssh_.program.empty(), settings_.files,
                        settings_.data);
  Sessions sessions;
  for (const NodeStart& node : nodes)
    sessions.push_back(std::make_shared<HostSession>(children_, settings_, ssh_, node));
  for_each_at_once(sessions.size(), [&](std::size_t i) {
    if (sessions[i]->start(files, ended)) { // needs heartbeats while other hosts get copies
      const std::lock_guard lock(mutex_);
      sessions_.push_back(sessions[i]);
      return;
    }
    auto end = sessions[i]->end(Clock::now() + kSshGoodBye);
    const std::lock_guard lock(mutex_);
    if (end)
      ended_.push_back(std::move(*end));
    if (sessions[i]->may_have_left_something())
      broken_.push_back(sessions[i]);
  });
}

std::vector<NodeEnd> SshLauncher::poll() {
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [this](const std::shared_ptr<HostSession>& session) {
    auto end = session->end(Clock::now());
    if (!end)
      return false;
    ended_.push_back(std::move(*end));
    if (session->may_have_left_something())
      broken_.push_back(session);
    return true;
  });
  return std::exchange(ended_, {});
}

void SshLauncher::stop(std::chrono::milliseconds grace) {
  Sessions sessions;
  Sessions broken;
  {
    const std::lock_guard lock(mutex_);
    sessions.swap(sessions_);
    broken.swap(broken_);
  }
  for (const auto& session : sessions)
    session->stop(grace);
  const auto deadline = Clock::now() + grace + kSshGoodBye;
  for (const auto& session : sessions) {
    auto end = session->end(deadline);
    if (!end) {
      session->hang_up();
      end = session->end(Clock::now() + kSshGoodBye);
    }
    if (end)
      ended_.push_back(std::move(*end));
    if (session->may_have_left_something())
      broken.push_back(session);
  }
  clean_up(std::move(broken));
}

void SshLauncher::clean_up(Sessions sessions) {
  std::mutex mutex;
  for_each_at_once(sessions.size(), [&](std::size_t i) {
    const std::string complaint = sessions[i]->clean_up(Clock::now() + ssh_.connect_limit * 2);
    sessions[i]->end(Clock::now() + kSshGoodBye);
    if (complaint.empty())
      return;
    const std::lock_guard lock(mutex);
    ended_.push_back({.node = sessions[i]->node().name, .how = complaint});
  });
}

} // namespace troupe::experiments::launchers

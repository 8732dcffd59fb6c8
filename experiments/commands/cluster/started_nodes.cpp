#include "experiments/commands/cluster/started_nodes.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "actors/placement/node_resources.hpp"
#include "env/compiled_model.hpp"
#include "experiments/commands/cluster/node_restarts.hpp"
#include "experiments/commands/running/deployment.hpp"
#include "experiments/launchers/make_launcher.hpp"

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostMessage = 8192; // maximum size of a command or an answer in bytes
constexpr int kStartSeconds = 60;          // time limit for an answer
constexpr int kStopSeconds = 60;           // added to the nodes' grace period
constexpr std::int64_t kLongestPoll = 3'600'000;

fs::path own_program() {
  return fs::read_symlink("/proc/self/exe");
}

std::vector<fs::path> key_files(const Cluster& cluster) {
  return cluster.keys().empty() ? std::vector<fs::path>{}
                                : std::vector<fs::path>{fs::path(cluster.keys())};
}

/// Returns nothing if the other end is closed or the time is up.
std::optional<std::string> receive_message(int socket, Clock::time_point limit) {
  pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
    const int found =
        ::poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongestPoll)));
    if ((found < 0 && errno == EINTR) || (found == 0 && left > kLongestPoll)) {
      continue;
    }
    if (found <= 0) {
      return std::nullopt;
    }
    std::string text(kMostMessage, '\0');
    const ssize_t size = ::recv(socket, text.data(), text.size(), 0);
    if (size <= 0) {
      return std::nullopt;
    }
    text.resize(static_cast<std::size_t>(size));
    return text;
  }
}

bool send_message(int socket, const std::string& text) {
  return ::send(socket, text.data(), std::min(text.size(), kMostMessage), MSG_NOSIGNAL) > 0;
}

} // namespace

StartedNodes::StartedNodes(Cluster cluster, LauncherKind kind, const fs::path& run)
    : cluster_(std::move(cluster)),
      kind_(kind),
      log_(run / "nodes.log"),
      launcher_(launchers::make_launcher(
          cluster_, kind_,
          {.program = own_program(),
           .files = key_files(cluster_),
           .data = {{env::suite_folder(), "suite"}},
           .environment = {},
           .output = [this](const std::string& node, std::string_view line) {
             log(node, std::string(line));
           }})) {}

StartedNodes::~StartedNodes() {
  watcher_ = {};
  launcher_->stop(std::chrono::milliseconds(
      static_cast<std::int64_t>(1000 * cluster_.supervision().grace_seconds())));
}

void StartedNodes::start(int port) {
  const HostPort head = head_endpoint(cluster_, true);
  std::vector<std::string> arguments = {
      "node", "--head",
      reachable_address(head.host, kind_ == LauncherKind::local ? "127.0.0.1" : host_name()) + ":"
          + std::to_string(head.port != 0 ? head.port : port),
      "--join-seconds", std::to_string(node_join_seconds(cluster_))};
  if (!cluster_.keys().empty()) {
    arguments.insert(arguments.end(), {"--keys", cluster_.keys()});
  }
  starts_ = launchers::node_starts(
      cluster_, kind_, cluster_nodes(cluster_, actors::resources_of_this_host()), arguments);
  watcher_ = std::jthread([this](const std::stop_token& ended) { watch(ended); });
}

void StartedNodes::log(const std::string& node, const std::string& line) {
  const std::scoped_lock lock(mutex_);
  log_.write(log_time(std::chrono::system_clock::now()) + ' ' + node + ": " + line);
}

void StartedNodes::watch(const std::stop_token& ended) {
  NodeRestarts restarts(starts_, cluster_.supervision().node_losses());
  const auto now = [] {
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  };
  const auto give_up = [&](const std::string& node) {
    const std::string text =
        "node " + node + " is given up after more than "
        + std::to_string(cluster_.supervision().node_losses())
        + " losses within an hour (supervision.node_losses); the run continues without it";
    log("launcher", text);
    std::fprintf(stderr, "troupe: %s\n", text.c_str());
  };
  std::unique_lock lock(sleep_);
  while (!ended.stop_requested()) {
    if (const auto due = restarts.due(now()); !due.empty()) {
      try {
        launcher_->start(due, ended);
      } catch (const std::exception& error) { // no node has been started
        const std::string problem = std::string("the nodes cannot be started: ") + error.what();
        log("launcher", problem);
        std::fprintf(stderr, "troupe: %s\n", problem.c_str());
        for (const launchers::NodeStart& start : due) {
          if (!restarts.lose(start.name, now())) {
            give_up(start.name);
          }
        }
      }
      if (ended.stop_requested()) { // what has failed since was stopped
        return;
      }
    }
    for (const launchers::NodeEnd& end : launcher_->poll()) {
      log(end.node, end.how);
      for (const std::string& line : end.last_lines) {
        log(end.node, line);
      }
      if (end.good) {
        continue;
      }
      const bool restart = restarts.lose(end.node, now());
      std::fprintf(stderr, "troupe: %s%s\n", end.how.c_str(), restart ? "; restarting it" : "");
      if (!restart) {
        give_up(end.node);
      }
    }
    wake_.wait_for(lock, ended, std::chrono::seconds(1), [] { return false; });
  }
}

/// A command is "NUMBER start PORT FOLDER" or "NUMBER stop"; its answer is "NUMBER problem". The
/// number lets a head ignore answers that were meant for its dead predecessor.
void serve_node_starts(int socket, const MakeNodes& make) {
  std::unique_ptr<StartedNodes> nodes;
  std::string started; // words of the command
  while (const auto command = receive_message(socket, Clock::time_point::max())) {
    std::istringstream in(*command);
    std::string number, verb, problem;
    int port = 0;
    in >> number >> verb;
    const std::string words = command->substr(std::min(number.size(), command->size()));
    try {
      if (verb == "stop") {
        nodes.reset();
        started.clear();
      } else if (words != started) {
        std::string run;
        in >> port;
        in.ignore();
        std::getline(in, run, '\0');
        nodes.reset(); // the port of a dead head, where the new one does not listen
        started.clear();
        nodes = make(run);
        nodes->start(port);
        started = words;
      }
    } catch (const std::exception& e) {
      problem = e.what();
    }
    send_message(socket, number + ' ' + problem);
  }
}

NodeStarter::NodeStarter(int socket, MakeNodes make, fs::path run, double grace_seconds)
    : socket_(socket),
      make_(std::move(make)),
      run_(std::move(run)),
      stop_seconds_(kStopSeconds + static_cast<int>(grace_seconds)) {
  if (socket_ < 0) {
    here_ = make_(run_);
  }
}

NodeStarter::~NodeStarter() {
  here_.reset();
  if (socket_ >= 0) {
    if (const std::string problem = ask("stop", stop_seconds_); !problem.empty()) {
      std::fprintf(stderr, "troupe: the nodes are killed: %s\n", problem.c_str());
    }
  }
}

void NodeStarter::start(int port) {
  if (here_) {
    here_->start(port);
    return;
  }
  const std::string problem =
      ask("start " + std::to_string(port) + ' ' + fs::absolute(run_).string(), kStartSeconds);
  if (!problem.empty()) {
    throw std::runtime_error(problem);
  }
}

std::string NodeStarter::ask(const std::string& command, int seconds) {
  const std::string number = std::to_string(::getpid()) + '.' + std::to_string(++asked_) + ' ';
  if (!send_message(socket_, number + command)) {
    return std::string("the process that starts nodes has ended: ") + std::strerror(errno);
  }
  const auto limit = Clock::now() + std::chrono::seconds(seconds);
  while (const auto answer = receive_message(socket_, limit)) {
    if (answer->starts_with(number)) {
      return answer->substr(number.size());
    }
  }
  return "the process that starts nodes did not answer";
}

} // namespace troupe::experiments::commands

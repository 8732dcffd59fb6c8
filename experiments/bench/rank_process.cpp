#include "experiments/bench/rank_process.hpp"

#include <array>
#include <charconv>
#include <csignal>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::experiments {

Seat parse_seat(const std::string& text) {
  std::istringstream stream(text);
  Seat seat;
  std::string port, rank, size;
  const auto number = [&text](const std::string& word) {
    int value = 0;
    const auto end = word.data() + word.size();
    if (word.empty() || std::from_chars(word.data(), end, value).ptr != end)
      throw std::invalid_argument("--join is \"" + text
                                  + "\"; it must be BACKEND:PORT:RANK:SIZE:NOTE, and is for the "
                                    "benchmark's own processes");
    return value;
  };
  std::getline(stream, seat.backend, ':');
  std::getline(stream, port, ':');
  std::getline(stream, rank, ':');
  std::getline(stream, size, ':');
  std::getline(stream, seat.note);
  seat.port = number(port);
  seat.rank = number(rank);
  seat.size = number(size);
  return seat;
}

std::unique_ptr<collectives::Communicator> take(const Seat& seat,
                                                const collectives::CommunicatorOptions& options) {
  if (seat.backend == "gloo")
    return collectives::make_gloo_communicator("127.0.0.1", seat.port, seat.rank, seat.size,
                                               options);
  return collectives::make_shared_memory_communicator("127.0.0.1", seat.port, seat.rank, seat.size,
                                                      options);
}

RankProcess::RankProcess(std::vector<std::string> words) {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("bench: no pipe to a rank");
  out_ = collectives::Socket(ends[0]);
  const collectives::Socket theirs(ends[1]);
  std::string program = "troupe";
  std::vector<char*> arguments{program.data()};
  for (auto& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const int error =
      posix_spawn(&id_, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw std::runtime_error("bench: cannot start a rank");
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : id_(std::exchange(other.id_, -1)), out_(std::move(other.out_)) {}

RankProcess::~RankProcess() {
  if (id_ < 0)
    return;
  signal(SIGKILL);
  waitpid(id_, nullptr, 0);
}

void RankProcess::signal(int number) const {
  ::kill(id_, number);
}

std::string RankProcess::line() const {
  std::string text;
  for (char c = 0;; text += c) {
    pollfd entry{out_.fd(), POLLIN, 0};
    if (poll(&entry, 1, 60'000) <= 0)
      throw std::runtime_error("bench: a rank says nothing for a minute");
    if (read(out_.fd(), &c, 1) != 1 || c == '\n')
      return text;
  }
}

std::vector<RankProcess> start_ranks(const std::string& stage, const std::string& backend, int size,
                                     const BenchOptions& options, const std::string& note) {
  const auto port = std::to_string(collectives::free_port());
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.emplace_back(std::vector<std::string>{"bench", stage, "--seconds",
                                                std::to_string(options.seconds), "--join",
                                                backend + ":" + port + ":" + std::to_string(rank)
                                                    + ":" + std::to_string(size) + ":" + note});
  return ranks;
}

} // namespace troupe::experiments

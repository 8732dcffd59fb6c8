// Data-parallel training of ResNet-50: images of 224x224, 8 per process and step, SGD with momentum
// 0.9 and weight decay 1e-4, float32, one computing thread per process, random data prepared
// beforehand. Images/s: the images of all processes divided by the time of kTrainSteps steps
// between two barriers, after kWarmUp steps (the first one learns the order in which gradients
// become ready). Scaling efficiency: images/s of 2 processes over twice that of 1 in the same
// repetition. It is also given relative to two simultaneous processes that exchange nothing,
// because cores that share caches, memory and clock allow no more. The processes run this program
// under torchrun's variables, with replicas over shared memory. Under a launcher, the program
// measures the group that it belongs to.
#include <array>
#include <chrono>
#include <stdexcept>

#include <fcntl.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "collectives/communicator.hpp"
#include "collectives/mesh/socket.hpp"
#include "collectives/rendezvous/process_topology.hpp"
#include "collectives/timeline.hpp"
#include "env/processes/start_program.hpp"
#include "experiments/bench/bench.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/nn/kernels/fused_sgd.hpp"
#include "learner/nn/module_state.hpp"
#include "learner/replicas/replica_threads.hpp"
#include "learner/workloads/resnet.hpp"

namespace troupe::experiments {
namespace {

using collectives::Communicator;
using collectives::Timeline;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kReplicaBatch = 8; // per process
constexpr std::int64_t kPictureSize = 224;
constexpr int kTrainSteps = 4;
constexpr int kWarmUp = 3;

/// Each step allocates and frees activations of hundreds of megabytes. This keeps freed memory
/// instead of returning it to the system page by page.
void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 256 << 20);
}

struct Training {
  explicit Training(Communicator* communicator, Timeline* recorded) : timeline(recorded) {
    torch::manual_seed(0);
    learner::lay_out_channels_last(*network);
    learner::WrappedOptimizerOptions options;
    options.bucket_bytes = 16 << 20;
    options.timeline = timeline;
    optimizer = std::make_unique<learner::WrappedOptimizer>(
        std::make_unique<learner::FusedSgd>(
            network->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-4)),
        communicator, options);
    pictures = torch::randn({kReplicaBatch, 3, kPictureSize, kPictureSize})
                   .contiguous(at::MemoryFormat::ChannelsLast);
    labels = torch::randint(0, 1000, {kReplicaBatch}, at::kLong);
  }

  void step() {
    optimizer->zero_grad();
    at::Tensor loss;
    {
      const Timeline::Span span(timeline, "forward");
      loss = torch::nn::functional::cross_entropy(network->forward(pictures), labels);
    }
    {
      const Timeline::Span span(timeline, "backward");
      loss.backward();
    }
    optimizer->step();
  }

  Timeline* timeline;
  learner::ResNet network;
  std::unique_ptr<learner::WrappedOptimizer> optimizer;
  at::Tensor pictures, labels;
};

void report_rates(const Report& report, const std::string& metric, const std::vector<double>& rates,
                  int processes, const std::string& backend) {
  report_values(report, "ddp", metric, "images/s", rates,
                {{"processes", std::to_string(processes)},
                 {"batch per process", std::to_string(kReplicaBatch)},
                 {"threads per process", "1"},
                 {"type", "float32"},
                 {"backend", backend}});
}

/// The work of one process of a group.
void train(const BenchOptions& options, const collectives::ProcessTopology& place,
           const Report& report) {
  keep_freed_memory();
  learner::prepare_compute_thread(1);
  std::unique_ptr<Communicator> communicator;
  if (place.size > 1)
    communicator = collectives::make_shared_memory_communicator(
        place.rendezvous_host, place.rendezvous_port, place.rank, place.size);
  Timeline timeline(place.rank);
  Training training(communicator.get(), options.timeline.empty() ? nullptr : &timeline);
  for (int i = 0; i < kWarmUp; ++i)
    training.step();
  std::vector<double> rates;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    if (communicator)
      communicator->barrier();
    const auto begin = Clock::now();
    for (int i = 0; i < kTrainSteps; ++i)
      training.step();
    if (communicator)
      communicator->barrier();
    rates.push_back(static_cast<double>(place.size * kReplicaBatch * kTrainSteps)
                    / std::chrono::duration<double>(Clock::now() - begin).count());
  }
  if (!options.timeline.empty())
    collectives::write_timeline({&timeline}, communicator.get(), options.timeline);
  if (place.rank == 0)
    report_rates(report, "ResNet-50 training", rates, place.size,
                 place.size > 1 ? "shared_memory" : "none");
}

/// Starts this program as rank `rank` of `size`, with its output going to `output`.
pid_t start(const BenchOptions& options, int rank, int size, int port, int output) {
  std::vector<std::string> arguments{"/proc/self/exe", "ddp", "--repetitions", "1", "--json"};
  if (!options.timeline.empty() && size > 1)
    arguments.insert(arguments.end(), {"--timeline", options.timeline});
  const auto number = std::to_string(rank), count = std::to_string(size);
  const std::vector<std::string> variables{
      "RANK=" + number,        "WORLD_SIZE=" + count,
      "LOCAL_RANK=" + number,  "LOCAL_WORLD_SIZE=" + count,
      "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port),
      "OMP_NUM_THREADS=1",     "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"}; // transparent huge pages
  const pid_t process = start_program(arguments, variables, {.output = output});
  if (process < 0)
    throw std::runtime_error("bench ddp: cannot start a process of this program");
  return process;
}

struct Group {
  collectives::Socket out; // output of its rank 0
  std::vector<pid_t> processes;
};

Group start_group(const BenchOptions& options, int size) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("bench ddp: cannot make a pipe");
  Group group{collectives::Socket(ends[0]), {}};
  const collectives::Socket theirs(ends[1]);
  const int port = collectives::free_port();
  for (int rank = 0; rank < size; ++rank)
    group.processes.push_back(start(options, rank, size, port, theirs.fd()));
  return group;
}

/// Waits until the group has ended and returns its images/s.
double rate_of(const Group& group) {
  std::string text;
  std::array<char, 4096> block{};
  for (ssize_t got = 0; (got = ::read(group.out.fd(), block.data(), block.size())) > 0;)
    text.append(block.data(), static_cast<std::size_t>(got));
  bool failed = false;
  for (const auto process : group.processes) {
    int status = 0;
    failed = ::waitpid(process, &status, 0) != process || status != 0 || failed;
  }
  const auto figure = nlohmann::json::parse(text.substr(0, text.find('\n')), nullptr, false);
  if (failed || figure.is_discarded() || !figure.contains("value"))
    throw std::runtime_error("bench ddp: a process of " + std::to_string(group.processes.size())
                             + " failed");
  return figure["value"].get<double>();
}

/// Images/s of two simultaneous processes that are independent of each other: what the machine
/// allows.
double rate_apart(const BenchOptions& options) {
  const auto first = start_group(options, 1), second = start_group(options, 1);
  return rate_of(first) + rate_of(second);
}

} // namespace

void bench_ddp(const BenchOptions& options, const Report& report) {
  const auto place = collectives::topology_of_this_process();
  if (place.source != "single")
    return train(options, place, report);
  std::vector<double> one, apart, two, efficiency, of_possible;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    one.push_back(rate_of(start_group(options, 1)));
    two.push_back(rate_of(start_group(options, 2)));
    apart.push_back(rate_apart(options));
    efficiency.push_back(two.back() / (2 * one.back()));
    of_possible.push_back(two.back() / apart.back());
  }
  report_rates(report, "ResNet-50 training", one, 1, "none");
  report_rates(report, "ResNet-50 training", two, 2, "shared_memory");
  report_rates(report, "ResNet-50 training, two processes apart", apart, 2, "none");
  const FigureConfig config{{"processes", "2"}, {"backend", "shared_memory"}};
  report_values(report, "ddp", "scaling efficiency", "ratio", efficiency, config);
  report_values(report, "ddp", "of two processes apart", "ratio", of_possible, config);
}

} // namespace troupe::experiments

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "env/processes/forked.hpp"
#include "experiments/bench/replay/replay_setup.hpp"
#include "replay/service/shard_client.hpp"
#include "replay/service/wire_format.hpp"

namespace troupe::experiments {

namespace {

using namespace replay_setup;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kShardDeadline{60};
constexpr int kInsert = 16; // items per insertion

struct Done { // work of one client
  double items = 0;
  double seconds = 0;
  double cpu_seconds = 0; // processor time of its process
};

double own_cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// A client of one shard in a separate process. It fills the shard; then each command makes it
/// insert or sample for a given time.
class ClientProcess {
public:
  ClientProcess(const Kind& kind, const std::string& endpoint, std::uint64_t writer_id,
                const Sharing& sharing, double seconds) {
    int orders[2] = {-1, -1};
    int results[2] = {-1, -1};
    const auto work = [&] {
      ::close(orders[1]);
      ::close(results[0]);
      try {
        play(kind, endpoint, writer_id, sharing, seconds, orders[0], results[1]);
      } catch (const std::exception& failure) { // the parent sees the closed pipe
        (void)!::write(STDERR_FILENO, failure.what(), std::strlen(failure.what()));
      }
    };
    if (::pipe(orders) != 0 || ::pipe(results) != 0 || (process_ = start_child(SIGKILL, work)) < 0)
      throw std::runtime_error(std::string("bench replay: ") + std::strerror(errno));
    ::close(orders[0]);
    ::close(results[1]);
    order_ = orders[1];
    result_ = results[0];
  }
  ~ClientProcess() {
    ::close(order_);
    ::close(result_);
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  void order(char what) {
    if (::write(order_, &what, 1) != 1)
      throw std::runtime_error("bench replay: a client is gone");
  }
  Done result() {
    Done done;
    if (::read(result_, &done, sizeof done) != static_cast<ssize_t>(sizeof done))
      throw std::runtime_error("bench replay: a client failed");
    return done;
  }

private:
  static void play(const Kind& kind, const std::string& endpoint, std::uint64_t writer_id,
                   const Sharing& sharing, double seconds, int orders, int results) {
    env::wire::Context context;
    replay::ShardClient client(context, endpoint, kind.spec, {.shared_memory = sharing});
    Stream stream(kind, writer_id);
    Batch batch(kind.spec);
    const auto insert = [&](int each) {
      const auto insertion = stream.next(each);
      if (!client.insert(insertion, Clock::now() + kShardDeadline))
        throw std::runtime_error("bench replay: an insertion was not accepted in time");
      return static_cast<double>(insertion->items.size());
    };
    const auto flush = [&] {
      if (!client.flush(Clock::now() + kShardDeadline))
        throw std::runtime_error("bench replay: insertions were not accepted in time");
    };
    const auto sample = [&] {
      if (!client.sample(kBatch, batch.view(), 0, Clock::now() + kShardDeadline))
        throw std::runtime_error("bench replay: no sample in time");
      return static_cast<double>(kBatch);
    };
    for (double filled = 0; filled < static_cast<double>(kind.items);)
      filled += insert(64);
    flush();
    for (char what = 0; ::read(orders, &what, 1) == 1;) {
      Done done;
      const double cpu = own_cpu_seconds();
      const auto begin = Clock::now();
      do {
        done.items += what == 'i' ? insert(kInsert) : sample();
        done.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      } while (done.seconds < seconds);
      flush();
      done.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      done.cpu_seconds = own_cpu_seconds() - cpu;
      if (::write(results, &done, sizeof done) != static_cast<ssize_t>(sizeof done))
        return;
    }
  }

  pid_t process_ = -1;
  int order_ = -1;
  int result_ = -1;
};

/// The bytes of the messages per inserted and per sampled item.
void message_bytes(const Report& report, const Kind& kind) {
  const auto bytes = [](const env::wire::Message& message) {
    double sum = static_cast<double>(message.header.size());
    for (const env::wire::Frame& frame : message.frames)
      sum += static_cast<double>(frame.bytes().size());
    return sum;
  };
  Stream stream(kind, 1);
  replay::Table table(config_of(kind), kind.spec, 1);
  double inserted = 0;
  double items = 0;
  for (int i = 0; i < 64; ++i) {
    const auto insertion = stream.next(kInsert);
    inserted += bytes(replay::encode_insertion(*insertion, 1, false));
    items += static_cast<double>(insertion->items.size());
    table.insert(*insertion);
  }
  std::vector<replay::Item> sampled;
  table.sample(kBatch, sampled);
  const double sample =
      bytes(replay::encode_sample(replay::RowLayout(kind.spec), 1, 1, 0, sampled,
                                  [](std::size_t size) { return env::wire::Frame(size); }));
  for (const auto& [what, value] : {std::pair{"insert", inserted / items},
                                    std::pair{"sample", sample / static_cast<double>(kBatch)}})
    report_values(report, "replay", kind.name + " " + what + ", message bytes", "bytes/item",
                  {value}, {});
}

void measure(const BenchOptions& options, const Report& report, Kind kind, int shards,
             const Sharing& sharing) {
  kind.items = std::min<std::int64_t>(kind.items, 100'000); // per shard
  std::vector<std::unique_ptr<ServerProcess>> servers;
  for (int i = 0; i < shards; ++i)
    servers.push_back(std::make_unique<ServerProcess>(config_of(kind), kind.spec, sharing));
  std::vector<std::unique_ptr<ClientProcess>> clients;
  for (int i = 0; i < shards; ++i)
    clients.push_back(std::make_unique<ClientProcess>(
        kind, servers[static_cast<std::size_t>(i)]->endpoint(), static_cast<std::uint64_t>(i) + 1,
        sharing, options.seconds));
  for (const char what : {'i', 's'}) {
    std::vector<double> rates;
    std::vector<double> of_server; // items per second of processor time
    std::vector<double> of_both;
    for (int repetition = -1; repetition < std::max(options.repetitions, 1); ++repetition) {
      double servers_cpu = 0;
      for (const auto& server : servers)
        servers_cpu -= cpu_seconds(server->process());
      for (const auto& client : clients)
        client->order(what);
      double rate = 0;
      double items = 0;
      double clients_cpu = 0;
      for (const auto& client : clients) {
        const Done done = client->result();
        rate += done.items / done.seconds;
        items += done.items;
        clients_cpu += done.cpu_seconds;
      }
      for (const auto& server : servers)
        servers_cpu += cpu_seconds(server->process());
      if (repetition < 0)
        continue; // warms up
      rates.push_back(rate);
      of_server.push_back(items / std::max(servers_cpu, 1e-3));
      of_both.push_back(items / std::max(servers_cpu + clients_cpu, 1e-3));
    }
    const std::string name = kind.name + (what == 'i' ? " insert, 16 at a time" : " sample of 256");
    for (const auto& [unit, values] :
         {std::pair{"items/s", &rates}, std::pair{"items/s of the shards' CPU", &of_server},
          std::pair{"items/s of all CPU", &of_both}})
      report_values(report, "replay", name, unit, *values,
                    {{"shards", std::to_string(shards)},
                     {"transport", sharing ? "shared memory" : "ZeroMQ, tcp loopback"}});
  }
}

} // namespace

void replay_setup::bench_shards(const BenchOptions& options, const Report& report,
                                const Kind& kind) {
  message_bytes(report, kind);
  for (const Sharing& sharing : {Sharing{}, Sharing{env::wire::SharedMemory{}}})
    for (const int shards : {1, 2, 4})
      measure(options, report, kind, shards, sharing);
}

} // namespace troupe::experiments

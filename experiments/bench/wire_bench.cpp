#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include "env/wire/socket.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/forked_server.hpp"

namespace troupe::experiments {

namespace {

using Clock = std::chrono::steady_clock;
using env::wire::Message;
using env::wire::Socket;

constexpr std::chrono::seconds kPatience{20};
constexpr std::size_t kInFlight = std::size_t{32} << 20; // bytes
constexpr std::array<std::size_t, 7> kFrameSizes{1 << 10,   4 << 10, 16 << 10, 64 << 10,
                                                 256 << 10, 1 << 20, 8 << 20};

env::wire::SocketOptions options_of(bool shares) {
  env::wire::SocketOptions options;
  if (shares)
    options.shared_memory = env::wire::SharedMemory{.least_frame_bytes = 1}; // even small ones
  return options;
}

/// A process that copies data out of the messages it receives, as if filling a batch, and answers
/// each with a header. The destructor ends it.
class Sink : public ForkedServer {
public:
  Sink(const std::string& endpoint, bool shares)
      : ForkedServer("wire", [&](int out) { serve(endpoint, shares, out); }) {}
  ~Sink() {
    if (endpoint().starts_with("ipc://"))
      std::filesystem::remove(endpoint().substr(6));
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

private:
  static void serve(const std::string& endpoint, bool shares, int out) {
    env::wire::Context context;
    Socket socket(context, env::wire::SocketType::router, options_of(shares));
    const std::string bound = socket.bind(endpoint);
    std::vector<std::byte> batch(kFrameSizes.back());
    for (auto left = ::write(out, bound.data(), bound.size()); left > 0;) {
      socket.wait(Clock::now() + kPatience);
      Message message;
      while (socket.try_receive(message) == Socket::Received::message) {
        for (const env::wire::Frame& frame : message.frames)
          std::memcpy(batch.data(), frame.bytes().data(), std::min(frame.size(), batch.size()));
        message.frames.clear();
        if (!message.header.empty())
          socket.send(std::move(message), Clock::now());
      }
    }
  }
};

struct Transport {
  Transport(env::wire::Context& context, std::string what, const std::string& endpoint, bool shares)
      : name(std::move(what)),
        sink(endpoint, shares),
        socket(context, env::wire::SocketType::dealer, options_of(shares)) {
    socket.connect(sink.endpoint());
    const auto end = Clock::now() + kPatience;
    while (shares && socket.shared_counters().links == 0) {
      if (Clock::now() > end)
        throw std::runtime_error("bench wire: two processes cannot share memory on this host");
      socket.wait(Clock::now() + std::chrono::milliseconds(10));
    }
  }
  std::string name;
  Sink sink;
  Socket socket;
};

/// Sends messages of one frame, each filled as when a batch is gathered. Returns messages per
/// second.
double exchange_rate(Transport& transport, const std::vector<std::byte>& source, double seconds) {
  Socket& socket = transport.socket;
  const auto window = std::clamp<std::size_t>(kInFlight / source.size(), 4, 512);
  std::size_t sent = 0;
  std::size_t answered = 0;
  const auto begun = Clock::now();
  const auto end = begun + std::chrono::duration<double>(seconds);
  while (Clock::now() < end || answered < sent) {
    const bool goes_on = Clock::now() < end || sent % (window / 2) != 0;
    if (goes_on && sent - answered < window) {
      Message message;
      message.frames.push_back(socket.frame(source.size()));
      std::memcpy(message.frames[0].bytes().data(), source.data(), source.size());
      if (++sent % (window / 2) == 0)
        message.header = "answer";
      socket.send(std::move(message), Clock::now());
      continue;
    }
    Message answer;
    if (!socket.wait(Clock::now() + kPatience))
      throw std::runtime_error("bench wire: no answer over " + transport.name);
    while (socket.try_receive(answer) == Socket::Received::message)
      answered += window / 2;
  }
  return static_cast<double>(sent) / std::chrono::duration<double>(Clock::now() - begun).count();
}

} // namespace

void bench_wire(const BenchOptions& options, const Report& report) {
  const auto folder = std::filesystem::temp_directory_path();
  const std::string ipc =
      "ipc://" + (folder / ("troupe-bench-wire-" + std::to_string(::getpid()))).string();
  env::wire::Context context;
  std::vector<std::unique_ptr<Transport>> transports;
  const auto add = [&](const char* name, const std::string& endpoint, bool shares) {
    transports.push_back(std::make_unique<Transport>(context, name, endpoint, shares));
  };
  add("tcp loopback", "tcp://127.0.0.1:*", false);
  add("ipc", ipc, false);
  add("shared memory", "tcp://127.0.0.1:*", true);
  for (const std::size_t size : kFrameSizes) {
    const std::vector<std::byte> source(size, std::byte{7});
    std::vector<std::vector<double>> rates(transports.size());
    for (int repetition = 0; repetition < options.repetitions; ++repetition)
      for (std::size_t i = 0; i < transports.size(); ++i) // interleaved
        rates[i].push_back(exchange_rate(*transports[i], source, options.seconds));
    for (std::size_t i = 0; i < transports.size(); ++i)
      report_values(
          report, "wire", std::to_string(size) + " bytes", "messages/s", rates[i],
          {{"transport", transports[i]->name},
           {"GB/s", std::to_string(median_of(rates[i]) * static_cast<double>(size) * 1e-9)}});
  }
}

} // namespace troupe::experiments

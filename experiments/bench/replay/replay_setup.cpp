#include "experiments/bench/replay/replay_setup.hpp"

#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "replay/service/shard_host.hpp"

namespace troupe::experiments::replay_setup {

namespace {

constexpr std::int64_t kEpisode = 1000; // steps

} // namespace

std::vector<Kind> kinds() {
  return {
      {"state",
       {.frame = {"state", env::ElementType::float32, {24}}, .action_size = 6},
       1'000'000,
       64},
      {"pixel",
       {.frame = {"pixels", env::ElementType::uint8, {3, 84, 84}}, .stack = 3, .action_size = 6},
       10'000,
       64}};
}

replay::TableConfig config_of(const Kind& kind) {
  return {.max_items = kind.items,
          .max_bytes = std::int64_t{8} << 30,
          .limiter = {.error_buffer = 1e15}};
}

replay::TableConfig prioritized(replay::TableConfig config) {
  config.sampler = {.kind = replay::SelectorKind::prioritized, .exponent = 0.6};
  return config;
}

Stream::Stream(const Kind& kind, std::uint64_t writer_id)
    : writer_(replay::transition_writer(kind.spec, writer_id)),
      action_(static_cast<std::size_t>(kind.spec.action_size), 0.5F),
      frame_bytes_(kind.spec.frame.bytes()),
      frames_(kFrames * frame_bytes_) {
  for (std::size_t i = 0; i < frames_.size(); ++i)
    frames_[i] = static_cast<std::byte>((i * 2654435761U) >> 13U & 0x3fU);
}

const std::byte* Stream::frame(std::size_t ahead) const {
  return &frames_[(static_cast<std::size_t>(step_) + ahead) % kFrames * frame_bytes_];
}

void Stream::step() {
  std::memcpy(writer_.next(replay::kFrame).data(), frame(), frame_bytes_);
  if (step_ == 0)
    begin_episode(writer_);
  else
    append_step(writer_, action_, 1, 1, step_ == kEpisode);
  step_ = step_ == kEpisode ? 0 : step_ + 1;
}

replay::InsertionPtr Stream::next(std::int64_t items) {
  while (writer_.pending_items() < items)
    step();
  return writer_.take();
}

Batch::Batch(const replay::TransitionSpec& spec)
    : observation(kBatch * spec.observation().bytes()),
      next_observation(observation.size()),
      action(kBatch * static_cast<std::size_t>(spec.action_size)),
      reward(kBatch),
      discount(kBatch),
      key(kBatch) {}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void report_rate(const BenchOptions& options, const Report& report, const Kind& kind,
                 const std::string& metric, const std::string& unit, const std::string& where,
                 const std::function<double()>& chunk) {
  report_values(report, "replay", kind.name + " " + metric, unit, measure_rates(options, chunk),
                {{"items", std::to_string(kind.items)}, {"transport", where}});
}

ServerProcess::ServerProcess(const replay::TableConfig& config, const replay::Signature& signature,
                             const Sharing& sharing)
    : ForkedServer("replay", [&](int out) {
        env::wire::Context context;
        const replay::ShardHost host(context, config, signature, 1,
                                     {.server = {.shared_memory = sharing}});
        if (::write(out, host.endpoint().data(), host.endpoint().size()) > 0)
          for (;;)
            ::pause();
      }) {}

double cpu_seconds(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::istringstream fields(text.substr(text.rfind(')') + 2)); // fields after the name: state, …
  std::string skipped;
  for (int i = 0; i < 11; ++i)
    fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

} // namespace troupe::experiments::replay_setup

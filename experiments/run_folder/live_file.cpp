#include "experiments/run_folder/live_file.hpp"

#include <unistd.h>

#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;
constexpr int kLiveVersion = 1;
constexpr std::size_t kMostLiveBytes = 1 << 20;

fs::path live_file(const fs::path& run) {
  return run / "live.json";
}

/// Resident memory of this process; 0 if /proc does not show it.
std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  in >> all >> resident;
  return in ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

nlohmann::ordered_json to_json(const actors::Progress& p, UtcTime now) {
  auto shards = nlohmann::ordered_json::array();
  for (const auto& shard : p.shards) {
    shards.push_back({{"index", shard.index},
                      {"items", shard.items},
                      {"bytes", shard.bytes},
                      {"inserted", shard.inserted},
                      {"sampled", shard.sampled},
                      {"waiting", shard.waiting}});
  }
  auto times = nlohmann::ordered_json::array();
  if (p.actor_times) {
    for (const auto& one : p.actor_times->actors) {
      times.push_back({{"role", one.role}, {"index", one.index}, {"seconds", one.seconds}});
    }
  }
  return {{"version", kLiveVersion},
          {"time", log_time(now)},
          {"environment_steps", p.environment_steps},
          {"agent_steps", p.agent_steps},
          {"episodes", p.episodes},
          {"updates", p.updates},
          {"inserts", p.inserts},
          {"samples", p.samples},
          {"frames", p.frames},
          {"replay_items", p.replay_items},
          {"replay_bytes", p.replay_bytes},
          {"replay_disk_bytes", p.replay_disk_bytes},
          {"replay_failed_spills", p.replay_failed_spills},
          {"failed_copies", p.failed_copies},
          {"taken_over", p.taken_over},
          {"refused_connections", p.refused_connections},
          {"priorities", p.priorities},
          {"parameter_version", p.parameter_version},
          {"parameter_lag", p.parameter_lag},
          {"insertions_in_flight", p.insertions_in_flight},
          {"waiting_insertions", p.waiting_insertions},
          {"waiting_samples", p.waiting_samples},
          {"ready_batches", p.ready_batches},
          {"training_seconds", p.training_seconds},
          {"processor_seconds", p.processor_seconds},
          {"environment_steps_per_second", p.environment_steps_per_second},
          {"updates_per_second", p.updates_per_second},
          {"samples_per_second", p.samples_per_second},
          {"frames_per_second", p.frames_per_second},
          {"episode_return", p.episode_return},
          {"process_bytes", resident_bytes()},
          {"learner", p.learner},
          {"seconds", p.seconds},
          {"actors", times},
          {"actors_left_out", p.actor_times ? p.actor_times->left_out : 0},
          {"shards", shards},
          {"waits", p.waits}};
}

} // namespace

LiveFile::LiveFile(const fs::path& run) : path_(live_file(run)) {}

bool LiveFile::write(const actors::Progress& progress, UtcTime now) {
  const fs::path partial = path_.string() + ".partial"; // readers never see a partial file
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  out << to_json(progress, now).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
      << "\n";
  out.close();
  std::error_code failed;
  if (out) {
    fs::rename(partial, path_, failed);
  }
  return out && !failed;
}

std::optional<std::string> read_live_file(const fs::path& run) {
  std::ifstream in(live_file(run), std::ios::binary);
  std::string text(kMostLiveBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.empty() || text.size() > kMostLiveBytes) {
    return std::nullopt;
  }
  return text;
}

} // namespace troupe::experiments

#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "experiments/config/config.hpp"
#include "experiments/run_folder/live_file.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::experiments {

/// Writes a run folder as `troupe train` leaves it: configuration, metrics of `rows` reports, an
/// evaluation, log and live.json.
inline void write_run(const std::filesystem::path& folder, int seed, int rows,
                      const std::string& more = "") {
  std::filesystem::create_directories(folder);
  const Experiment experiment =
      parse_experiment("environment { task: \"cartpole_balance\" }", "balance.textproto",
                       {"seed=" + std::to_string(seed), "stop.environment_steps=1000"});
  std::ofstream(folder / "config.textproto") << resolved_text(experiment);
  std::ofstream metrics(folder / "metrics.csv", std::ios::binary);
  metrics << "kind,environment_steps,updates,frames,training_seconds,episode_return,"
             "evaluation_return\r\n";
  for (int i = 1; i <= rows; ++i) {
    metrics << "progress," << 10 * i << "," << i << "," << 40 * i << "," << 0.5 * i << "," << i % 7
            << ",\r\n";
  }
  metrics << "final," << 10 * rows << "," << rows << ",,9,," << 100 * seed << "\r\n" << more;
  std::ofstream(folder / "log.txt") << "2026-11-25T10:00:00Z info training\n"
                                       "2026-11-25T10:00:01Z warning a disk is slow\n"
                                       "2026-11-25T10:00:02Z info evaluation\n";
  actors::Progress progress;
  progress.environment_steps = 10 * rows;
  progress.insertions_in_flight = 12;
  progress.refused_connections = 4;
  progress.learner = {{"critic_loss", 0.5}};
  progress.seconds = {{"learner.update", 3.0}, {"environment.step", 2.0}};
  progress.shards = {{.index = 0,
                      .items = 50,
                      .bytes = 9000,
                      .inserted = 50,
                      .sampled = 1600,
                      .waiting = "a sample waits for items"}};
  LiveFile(folder).write(progress, UtcTime(std::chrono::seconds(1'795'255'200)));
}

} // namespace troupe::experiments

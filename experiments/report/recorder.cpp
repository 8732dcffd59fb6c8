#include "experiments/report/recorder.hpp"

#include <fstream>
#include <numeric>
#include <sstream>

#include "experiments/report/picture.hpp"

namespace troupe::experiments {
namespace {
constexpr std::size_t kMostEpisodes = 10'000; // per histogram
constexpr std::uintmax_t kMostPictureBytes = 64UL << 20;
} // namespace

Recorder::Recorder(Options options)
    : options_(std::move(options)),
      log_(options_.folder / "log.txt"),
      metrics_(options_.folder / "metrics.csv", options_.columns),
      live_(options_.folder),
      events_(options_.folder, options_.now()),
      printer_(options_.screen == nullptr ? stderr : options_.screen, options_.terminal) {
  events_.started(options_.now(), options_.settings);
  if (const std::string names = metrics_.left_out(); !names.empty()) {
    log("warning",
        "metrics.csv keeps the columns that it was created with and gets no values of " + names);
  }
}

actors::RunCallbacks Recorder::callbacks() {
  return {.progress = [this](const actors::Progress& p) { progress(p); },
          .evaluated = [this](const actors::Evaluated& e) { evaluated(e); },
          .log = [this](const std::string& level, const std::string& text) { log(level, text); },
          .episode = [this](std::int64_t steps, double episode_return,
                            std::int64_t length) { episode(steps, episode_return, length); },
          .distributions = [this](const actors::Distributions& d) { distributions(d); }};
}

/// Logs which files have stopped or resumed taking data since the last call.
void Recorder::tell_of_disk() {
  for (const auto& news :
       {metrics_.file().news(), metrics_.lines().news(), events_.file().news(), log_.news()}) {
    if (news) {
      log("warning", *news);
    }
  }
}

std::string Recorder::unwritten() {
  tell_of_disk();
  for (env::AppendedFile* const file : {&metrics_.file(), &metrics_.lines(), &events_.file()}) {
    if (const std::string& problem = file->flush(); !problem.empty()) {
      return problem;
    }
  }
  return {};
}

void Recorder::log(const std::string& level, const std::string& text) {
  log_.write(options_.now(), level, text);
  if (options_.listener) {
    options_.listener(level, text);
  }
  if (options_.screen != nullptr) {
    printer_.line(level == "info" ? text : level + ": " + text);
  }
}

void Recorder::progress(const actors::Progress& p) {
  tell_of_disk();
  metrics_.progress(p);
  live_.write(p, options_.now());
  const bool on_data = options_.stop.updates > 0;
  std::map<std::string, double> values = {{"rate/updates_per_second", p.updates_per_second}};
  if (on_data) {
    values["rate/samples_per_second"] = p.samples_per_second;
  } else {
    values.insert({{"rate/environment_steps_per_second", p.environment_steps_per_second},
                   {"rate/frames_per_second", p.frames_per_second},
                   {"replay/items", static_cast<double>(p.replay_items)},
                   {"replay/bytes", static_cast<double>(p.replay_bytes)},
                   {"replay/disk_bytes", static_cast<double>(p.replay_disk_bytes)},
                   {"replay/failed_spills", static_cast<double>(p.replay_failed_spills)},
                   {"actors/parameter_lag", p.parameter_lag},
                   {"learner/updates", static_cast<double>(p.updates)}});
  }
  for (const auto& [name, value] : p.learner) {
    values.emplace("learner/" + name, value);
  }
  events_.scalars(options_.now(), on_data ? p.updates : p.environment_steps, values);
  if (options_.screen != nullptr) {
    printer_.show(p, options_.stop, last_evaluation_);
  }
}

void Recorder::evaluated(const actors::Evaluated& e) {
  if (e.returns.empty()) {
    measured(e);
    return;
  }
  const double mean = std::accumulate(e.returns.begin(), e.returns.end(), 0.0)
                      / static_cast<double>(e.returns.size());
  last_evaluation_ = mean;
  metrics_.evaluation(e);
  events_.scalars(options_.now(), options_.stop.updates > 0 ? e.updates : e.environment_steps,
                  {{e.final ? "evaluation/final_return" : "evaluation/return", mean}});
  char text[96];
  std::snprintf(text, sizeof text, "%s: mean return %.1f over %zu episode%s after ",
                e.final ? "final evaluation" : "evaluation", mean, e.returns.size(),
                e.returns.size() == 1 ? "" : "s");
  const auto steps = std::to_string(e.environment_steps) + " environment steps, ";
  log("info",
      text + (options_.stop.updates > 0 ? "" : steps) + std::to_string(e.updates) + " updates");
}

void Recorder::measured(const actors::Evaluated& e) {
  std::string text;
  std::map<std::string, double> values;
  for (const auto& [name, value] : e.metrics) {
    values[(e.final ? "evaluation/final_" : "evaluation/") + name] = value;
    char part[96];
    std::snprintf(part, sizeof part, "%s %.4g", name.c_str(), value);
    text += (text.empty() ? "" : ", ") + std::string(part);
  }
  metrics_.evaluation(e);
  events_.scalars(options_.now(), e.updates, values);
  pictures(e);
  log("info", (e.final ? "final evaluation: " : "evaluation: ") + text + " after "
                  + std::to_string(e.updates) + " updates");
}

void Recorder::pictures(const actors::Evaluated& e) {
  try {
    for (const auto& [name, shown] : e.pictures) {
      const auto folder = options_.folder / "pictures";
      std::filesystem::create_directories(folder);
      const auto file = folder / (name + "-" + std::to_string(e.updates) + ".png");
      write_png(file, shown.width, shown.height, shown.rgb);
      picture("pictures/" + name, e.updates, file, shown.width, shown.height);
    }
  } catch (const std::exception& failure) { // a full disk
    log("warning", std::string("no pictures: ") + failure.what());
  }
}

void Recorder::picture(const std::string& tag, std::int64_t step, const std::filesystem::path& file,
                       int width, int height) {
  if (picture_bytes_ > kMostPictureBytes) {
    return;
  }
  picture_bytes_ += std::filesystem::file_size(file);
  if (picture_bytes_ > kMostPictureBytes) {
    log("warning", "pictures in TensorBoard's events have reached 64 MiB; " + file.string()
                       + " and later ones are files only");
    return;
  }
  std::ostringstream bytes;
  bytes << std::ifstream(file, std::ios::binary).rdbuf();
  events_.picture(options_.now(), step, tag, {width, height, bytes.str()});
}

void Recorder::ended(bool success) {
  events_.ended(options_.now(), success);
}

void Recorder::episode(std::int64_t environment_steps, double episode_return, std::int64_t length) {
  events_.scalars(
      options_.now(), environment_steps,
      {{"episode/return", episode_return}, {"episode/length", static_cast<double>(length)}});
  if (returns_.size() < kMostEpisodes) {
    returns_.push_back(episode_return);
    lengths_.push_back(static_cast<double>(length));
  } else {
    returns_[next_episode_ % kMostEpisodes] = episode_return;
    lengths_[next_episode_++ % kMostEpisodes] = static_cast<double>(length);
  }
}

/// Adds histograms of the episodes that ended since the last distributions.
void Recorder::distributions(const actors::Distributions& made) {
  auto histograms = made.histograms;
  histograms.emplace("episode/returns", learner::histogram_of(returns_));
  histograms.emplace("episode/lengths", learner::histogram_of(lengths_));
  returns_.clear();
  lengths_.clear();
  next_episode_ = 0;
  events_.histograms(options_.now(),
                     options_.stop.updates > 0 ? made.updates : made.environment_steps, histograms);
}

} // namespace troupe::experiments

#include "experiments/report/progress_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "env/legible.hpp"
#include "experiments/run_folder/clock.hpp"

namespace troupe::experiments {
namespace {

constexpr double kPlainPeriodSeconds = 10;

std::string short_count(double value) {
  char text[32];
  if (value < 10'000) {
    std::snprintf(text, sizeof text, "%.0f", value);
  } else if (value < 1e6) {
    std::snprintf(text, sizeof text, "%.1fk", value / 1e3);
  } else {
    std::snprintf(text, sizeof text, "%.2fM", value / 1e6);
  }
  return text;
}

std::string rate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

struct Part {
  std::string text;
  int importance; // 0 is dropped last
};

} // namespace

double seconds_left(const actors::Progress& progress, const actors::RunConfig::Stop& stop) {
  double left = std::numeric_limits<double>::quiet_NaN();
  const bool on_data = stop.updates > 0;
  const auto done = static_cast<double>(on_data ? progress.updates : progress.environment_steps);
  const auto all = static_cast<double>(on_data ? stop.updates : stop.environment_steps);
  const double now = on_data ? progress.updates_per_second : progress.environment_steps_per_second;
  const double mean_rate = progress.training_seconds > 0 ? done / progress.training_seconds : 0;
  if (const double speed = now > 0 ? now : mean_rate; speed > 0) {
    left = (all - done) / speed;
  }
  if (stop.minutes > 0) {
    const double by_time = stop.minutes * 60 - progress.training_seconds;
    left = std::isnan(left) ? by_time : std::min(left, by_time);
  }
  return std::isnan(left) ? left : std::max(left, 0.0);
}

namespace {

/// The figures of a run in an environment, most important first.
std::vector<Part> parts_of_play(const actors::Progress& progress,
                                const actors::RunConfig::Stop& stop,
                                std::optional<double> evaluation_return) {
  const auto steps = static_cast<double>(progress.environment_steps);
  std::vector<Part> parts = {
      {short_count(steps) + "/" + short_count(static_cast<double>(stop.environment_steps))
           + " steps",
       0},
      {rate(progress.environment_steps_per_second) + " steps/s", 3},
  };
  if (progress.frames > 0 || progress.frames_per_second > 0) {
    parts.push_back({rate(progress.frames_per_second) + " frames/s", 4});
  }
  parts.push_back({short_count(static_cast<double>(progress.updates)) + " updates", 5});
  parts.push_back({rate(progress.updates_per_second) + " updates/s", 3});
  parts.push_back({"return "
                       + (std::isfinite(progress.episode_return) ? rate(progress.episode_return)
                                                                 : std::string("-")),
                   1});
  if (evaluation_return) {
    parts.push_back({"evaluation " + rate(*evaluation_return), 2});
  }
  return parts;
}

std::vector<Part> parts_on_data(const actors::Progress& progress,
                                const actors::RunConfig::Stop& stop) {
  std::vector<Part> parts = {{short_count(static_cast<double>(progress.updates)) + "/"
                                  + short_count(static_cast<double>(stop.updates)) + " updates",
                              0},
                             {rate(progress.samples_per_second) + " rows/s", 3},
                             {rate(progress.updates_per_second) + " updates/s", 4}};
  for (const auto& [name, importance] :
       {std::pair{"loss", 1}, {"accuracy", 1}, {"critic_loss", 1}, {"generator_loss", 2}}) {
    if (const auto found = progress.learner.find(name); found != progress.learner.end()) {
      char text[64];
      std::snprintf(text, sizeof text, "%s %.3f", name, found->second);
      parts.push_back({text, importance});
    }
  }
  return parts;
}

} // namespace

std::string progress_text(const actors::Progress& progress, const actors::RunConfig::Stop& stop,
                          std::optional<double> evaluation_return, std::size_t width) {
  std::vector<Part> parts = stop.updates > 0 ? parts_on_data(progress, stop)
                                             : parts_of_play(progress, stop, evaluation_return);
  parts.push_back({duration_text(seconds_left(progress, stop)) + " left", 2});

  const auto joined = [&](int least_important) {
    std::string out;
    for (const Part& part : parts) {
      if (part.importance <= least_important) {
        out += (out.empty() ? "" : " | ") + part.text;
      }
    }
    return out;
  };
  for (int importance = 5; importance > 0; --importance) {
    if (std::string text = joined(importance); text.size() <= width) {
      return text;
    }
  }
  return joined(0).substr(0, width);
}

ProgressPrinter::ProgressPrinter(std::FILE* out, bool terminal, std::size_t columns)
    : out_(out), terminal_(terminal), columns_(columns) {}

ProgressPrinter::~ProgressPrinter() {
  finish();
}

std::size_t ProgressPrinter::width() const {
  if (columns_ > 0) {
    return columns_;
  }
  winsize size{};
  const bool known = ::ioctl(::fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1U : 79U; // the last column would wrap on some terminals
}

void ProgressPrinter::show(const actors::Progress& progress, const actors::RunConfig::Stop& stop,
                           std::optional<double> evaluation_return) {
  if (terminal_) {
    const std::string text = progress_text(progress, stop, evaluation_return, width());
    std::fprintf(out_, "\r%s\x1b[K", text.c_str());
    drawn_ = true;
  } else if (progress.training_seconds >= next_plain_seconds_) {
    next_plain_seconds_ = progress.training_seconds + kPlainPeriodSeconds;
    std::fprintf(out_, "%s\n", progress_text(progress, stop, evaluation_return, 1000).c_str());
  }
  std::fflush(out_);
}

void ProgressPrinter::line(const std::string& text) {
  std::fprintf(out_, drawn_ ? "\r\x1b[K%s\n" : "%s\n", env::legible(text).c_str());
  drawn_ = false;
  std::fflush(out_);
}

void ProgressPrinter::finish() {
  if (drawn_) {
    std::fputc('\n', out_);
    std::fflush(out_);
  }
  drawn_ = false;
}

} // namespace troupe::experiments

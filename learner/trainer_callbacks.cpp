#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "learner/trainer.hpp"

namespace troupe::learner {
namespace {

double metric_of(const TrainerReport& report, const std::string& name) {
  const auto found = report.metrics.find(name);
  if (found != report.metrics.end())
    return found->second;
  std::string known;
  for (const auto& [one, value] : report.metrics)
    known += (known.empty() ? "\"" : ", \"") + one + '"';
  throw std::invalid_argument("trainer: there is no metric \"" + name + "\"; there are " + known);
}

/// The best value of a metric so far.
class Best {
public:
  explicit Best(bool lower) : sign_(lower ? 1 : -1) {}
  bool improved(double value) {
    if (!(sign_ * value < best_))
      return false;
    best_ = sign_ * value;
    return true;
  }

private:
  double sign_;
  double best_ = std::numeric_limits<double>::infinity();
};

class StopEarly : public Callback {
public:
  StopEarly(std::string metric, int patience, bool lower)
      : metric_(std::move(metric)), patience_(patience), best_(lower) {
    if (patience < 1)
      throw std::invalid_argument("stop_early: patience " + std::to_string(patience)
                                  + " must be at least 1 epoch");
  }
  bool after_epoch(Trainer&, const TrainerReport& report) override {
    waited_ = best_.improved(metric_of(report, metric_)) ? 0 : waited_ + 1;
    return waited_ < patience_;
  }

private:
  std::string metric_;
  int patience_;
  int waited_ = 0;
  Best best_;
};

class SaveBest : public Callback {
public:
  SaveBest(std::filesystem::path path, std::string metric, bool lower)
      : path_(std::move(path)), metric_(std::move(metric)), best_(lower) {}
  bool after_epoch(Trainer& trainer, const TrainerReport& report) override {
    if (metric_.empty() || best_.improved(metric_of(report, metric_)))
      trainer.save(path_);
    return true;
  }

private:
  std::filesystem::path path_;
  std::string metric_;
  Best best_;
};

class LogCsv : public Callback {
public:
  explicit LogCsv(std::filesystem::path path) : path_(std::move(path)) {}
  bool after_epoch(Trainer&, const TrainerReport& report) override {
    if (!file_.is_open()) {
      file_.open(path_, std::ios::trunc);
      file_ << "epoch,steps";
      for (const auto& [name, value] : report.metrics)
        file_ << ',' << name;
      file_ << '\n';
    }
    file_ << report.epoch << ',' << report.steps;
    for (const auto& [name, value] : report.metrics)
      file_ << ',' << value;
    file_ << std::endl;
    if (!file_)
      throw std::runtime_error("log_csv: cannot write " + path_.string()
                               + "; is there a folder of that name, with room in it?");
    return true;
  }

private:
  std::filesystem::path path_;
  std::ofstream file_;
};

} // namespace

std::unique_ptr<Callback> stop_early(std::string metric, int patience, bool lower_is_better) {
  return std::make_unique<StopEarly>(std::move(metric), patience, lower_is_better);
}

std::unique_ptr<Callback> save_best(std::filesystem::path path, std::string metric,
                                    bool lower_is_better) {
  return std::make_unique<SaveBest>(std::move(path), std::move(metric), lower_is_better);
}

std::unique_ptr<Callback> log_csv(std::filesystem::path path) {
  return std::make_unique<LogCsv>(std::move(path));
}

} // namespace troupe::learner

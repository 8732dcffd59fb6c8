// Writes an event file into the folder that is named; tensorboard_test.py reads it back.
#include <vector>

#include "experiments/run_folder/event_file.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  using troupe::experiments::UtcTime;
  const UtcTime now = UtcTime(std::chrono::seconds(1'795'255'200));
  troupe::experiments::EventFile file(argv[1], now);
  for (int step = 0; step < 1000; ++step) {
    file.scalars(now + std::chrono::seconds(step), 10 * step,
                 {{"evaluation/return", 0.5 * step}, {"learner/critic_loss", -1.0 / (step + 1)}});
  }
  std::vector<double> values;
  for (int i = 0; i < 320; ++i) {
    values.push_back((i - 160) / 160.0); // from -1 to 0.99375, ten in each bin
  }
  const auto histogram = troupe::learner::histogram_of(values);
  for (int step = 0; step < 3; ++step) {
    file.histograms(now, 10 * step, {{"parameters/critic.weight", histogram}, {"empty", {}}});
  }
  return 0;
}

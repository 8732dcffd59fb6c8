// Writes an event file into the folder that is named; tensorboard_test.py reads it back.
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
  return 0;
}

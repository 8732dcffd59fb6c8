// Writes the events of two runs into the folders "a" and "b" of the given folder;
// tensorboard_test.py reads them back.
#include <fstream>
#include <sstream>
#include <vector>

#include "experiments/report/picture.hpp"
#include "experiments/report/video.hpp"
#include "experiments/run_folder/event_file.hpp"

using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

const UtcTime kWritten = UtcTime(std::chrono::seconds(1'795'255'200));

std::string bytes_of(const fs::path& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

void write_curves(EventFile& file) {
  for (int step = 0; step < 1000; ++step) {
    file.scalars(kWritten + std::chrono::seconds(step), 10 * step,
                 {{"evaluation/return", 0.5 * step}, {"learner/critic_loss", -1.0 / (step + 1)}});
  }
  std::vector<double> values;
  for (int i = 0; i < 320; ++i) {
    values.push_back((i - 160) / 160.0); // from -1 to 0.99375, ten in each bin
  }
  const auto histogram = troupe::learner::histogram_of(values);
  for (int step = 0; step < 3; ++step) {
    file.histograms(kWritten, 10 * step, {{"parameters/critic.weight", histogram}, {"empty", {}}});
  }
}

/// A red picture, and a video that gets brighter.
void write_pictures(EventFile& file, const fs::path& folder) {
  std::vector<std::uint8_t> pixels(24 * 16 * 3);
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    pixels[i] = 255;
  }
  write_png(folder / "red.png", 24, 16, pixels);
  file.picture(kWritten, 7, "pictures/samples", {24, 16, bytes_of(folder / "red.png")});
  const auto film = write_video(folder / "film.gif", 32, 32, 10);
  for (int frame = 0; frame < 5; ++frame) {
    film->add(std::vector<std::uint8_t>(32 * 32 * 3, static_cast<std::uint8_t>(50 * frame)));
  }
  film->finish();
  file.picture(kWritten, 8, "evaluation/video", {32, 32, bytes_of(folder / "film.gif")});
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  const fs::path folder = argv[1];
  fs::create_directories(folder / "a");
  fs::create_directories(folder / "b");
  EventFile first(folder / "a", kWritten);
  first.started(kWritten, {{"d4pg.batch_size", 256.0},
                           {"evaluation.video", true},
                           {"environment.task", "cartpole_balance"}});
  write_curves(first);
  write_pictures(first, folder);
  first.ended(kWritten + std::chrono::seconds(60), true);
  EventFile second(folder / "b", kWritten);
  second.started(kWritten, {{"sac.batch_size", 128.0}, {"environment.task", "walker_walk"}});
  second.scalars(kWritten, 10, {{"evaluation/final_return", 3}});
  second.ended(kWritten + std::chrono::seconds(5), false);
  return 0;
}

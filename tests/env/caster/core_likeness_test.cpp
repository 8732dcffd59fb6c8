#include <doctest/doctest.h>

#include "env/caster/ray_caster.hpp"
#include "env/golden/golden.hpp"
#include "env/golden/golden_frames.hpp"
#include "env/golden/golden_replay.hpp"
#include "env/render/likeness.hpp"
#include "tests/env/golden/recordings.hpp"

using namespace troupe::env;

namespace {

struct Likeness {
  int frames = 0;
  double similarity = 0; // sum over all pictures
  double difference = 0;
};

Likeness compare(const std::string& folder, const std::string& task) {
  GoldenReplay replay(folder, task, {});
  const GoldenFrames frames = read_golden_frames(folder, task);
  RayCaster caster(caster_model(replay.physics().compiled()),
                   {.height = frames.height,
                    .width = frames.width,
                    .camera = frames.camera,
                    .layout = PixelLayout::channels_last});
  std::vector<std::uint8_t> drawn(caster.bytes());
  Likeness likeness;
  const auto at = [&](int step) {
    const auto recorded = frames.at(step);
    if (recorded.empty())
      return;
    caster.draw(replay.physics().model(), replay.physics().data(), drawn);
    likeness.similarity += structural_similarity(recorded, drawn, {frames.height, frames.width, 3});
    likeness.difference += mean_absolute_difference(recorded, drawn);
    ++likeness.frames;
  };
  replay.begin();
  at(0);
  const RecordedTable actions = replay.get("actions", replay.spec().action.size());
  for (std::size_t i = 0; i < actions.rows; ++i) {
    replay.step(actions.row(i));
    at(static_cast<int>(i) + 1);
  }
  return likeness;
}

void check_all(const std::string& folder) {
  double sum = 0;
  double tasks = 0;
  for (const std::string& task : read_golden_index(folder).tasks) {
    CAPTURE(task);
    const Likeness likeness = compare(folder, task);
    REQUIRE(likeness.frames > 0);
    // OpenGL's shadow map speckles the ground of the escape task at random: its own pictures differ
    // from each other there.
    const double least = task == "quadruped_escape" ? .91 : .975;
    CHECK(likeness.similarity / likeness.frames >= least);
    CHECK(likeness.difference / likeness.frames <= 1.5);
    sum += likeness.similarity / likeness.frames;
    ++tasks;
  }
  CHECK(sum / tasks >= .988);
}

} // namespace

TEST_CASE("The caster's pictures resemble dm_control's") {
  check_all(kRecordings);
}

TEST_CASE("The caster's pictures resemble those of dm_control's longer recordings") {
  if (const std::string folder = longer_recordings(); !folder.empty())
    check_all(folder);
}

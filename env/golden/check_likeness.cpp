#include "env/golden/check_likeness.hpp"

#include <algorithm>
#include <optional>

#include "env/golden/golden.hpp"
#include "env/golden/golden_frames.hpp"
#include "env/golden/golden_replay.hpp"
#include "env/plugin/rollout.hpp"
#include "env/random.hpp"
#include "env/render/opengl_renderer.hpp"
#include "env/wrappers/pixels.hpp"

namespace troupe::env {

namespace {

constexpr int kMostSteps = 40;
constexpr OpenglQuality kExactShapes{.slices = 200, .multisampling = false};

class Judge {
public:
  explicit Judge(LikenessReport& report) : report_(report) {}

  void at_least(const char* what, double value, double limit) {
    if (!(value >= limit))
      report_.failures.push_back(std::string(what) + " is " + short_text(value) + ", below "
                                 + short_text(limit));
  }
  void at_most(const char* what, double value, double limit) {
    if (!(value <= limit))
      report_.failures.push_back(std::string(what) + " is " + short_text(value) + ", above "
                                 + short_text(limit));
  }

private:
  LikenessReport& report_;
};

void add_picture(std::span<const std::uint8_t> reference, std::span<const std::uint8_t> drawn,
                 const PictureShape& shape, std::uint64_t seed, LikenessReport& report) {
  const double similarity = structural_similarity(reference, drawn, shape);
  const double difference = mean_absolute_difference(reference, drawn);
  report.similarity += similarity;
  report.difference += difference;
  report.worst_difference = std::max(report.worst_difference, difference);
  if (report.pictures++ == 0 || similarity < report.worst_similarity) {
    report.worst_similarity = similarity;
    report.worst_seed = seed;
  }
}

void finish(LikenessReport& report) {
  if (report.pictures == 0)
    return;
  report.similarity /= report.pictures;
  report.difference /= report.pictures;
  Judge judge(report);
  judge.at_least("the mean structural similarity", report.similarity, kSimilarityWorst);
  judge.at_most("the mean absolute difference (levels)", report.difference, kDifferenceLevels);
  if (report.shapes.inner_pixels > 0) {
    judge.at_least("the share of equal segmentation", report.shapes.agreement(),
                   kSegmentationShare);
    judge.at_least("the share of depths within 0.001", report.shapes.depth_share_within(),
                   kDepthShare);
  }
}

/// Compares depth and segmentation of one view as drawn by two renderers.
class ShapeComparison {
public:
  ShapeComparison(Physics& physics, const PixelOptions& options, const PixelOptions& opengl)
      : reference_(physics, opengl, PixelLayout::channels_last, kExactShapes),
        compared_(make_renderer(physics, options, PixelLayout::channels_last)) {
    for (auto* depth : {&depth_a_, &depth_b_})
      depth->resize(reference_.pixels());
    for (auto* objects : {&objects_a_, &objects_b_})
      objects->resize(2 * reference_.pixels());
  }

  ShapeLikeness compare() {
    reference_.draw_depth(depth_a_);
    reference_.draw_segmentation(objects_a_);
    compared_->draw_depth(depth_b_);
    compared_->draw_segmentation(objects_b_);
    return compare_shapes(depth_a_, depth_b_, objects_a_, objects_b_, reference_.height(),
                          reference_.width());
  }

private:
  OpenglRenderer reference_;
  std::unique_ptr<Renderer> compared_;
  std::vector<float> depth_a_;
  std::vector<float> depth_b_;
  std::vector<std::int32_t> objects_a_;
  std::vector<std::int32_t> objects_b_;
};

} // namespace

void begin_random_state(Environment& environment, std::uint64_t seed) {
  Random random(seed);
  const auto steps = static_cast<std::int64_t>(random.uniform(0, kMostSteps + 1));
  play(environment, seed, steps);
}

LikenessReport check_likeness(const std::string& task, const LikenessOptions& options) {
  LikenessReport report;
  report.task = task;
  const auto environment = make_bare({.task = task, .models = options.models});
  check_can_be_drawn(*environment, options.pixels);
  begin_random_state(*environment, options.seed); // sets height fields and sizes
  PixelOptions opengl = options.pixels;
  opengl.renderer = RendererKind::opengl;
  Physics& physics = *environment->physics();
  OpenglRenderer reference(physics, opengl, PixelLayout::channels_last);
  const auto compared = make_renderer(physics, options.pixels, PixelLayout::channels_last);
  std::optional<ShapeComparison> shapes;
  if (options.shapes)
    shapes.emplace(physics, options.pixels, opengl);
  std::vector<std::uint8_t> a(reference.bytes());
  std::vector<std::uint8_t> b(compared->bytes());
  const PictureShape shape{reference.height(), reference.width(), reference.channels()};
  for (int i = 0; i < options.states; ++i) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(i);
    begin_random_state(*environment, seed);
    reference.draw(a);
    compared->draw(b);
    add_picture(a, b, shape, seed, report);
    if (shapes)
      report.shapes.add(shapes->compare());
  }
  finish(report);
  return report;
}

LikenessReport check_recorded_likeness(const std::string& folder, const std::string& task,
                                       const LikenessOptions& options) {
  LikenessReport report;
  report.task = task;
  const GoldenFrames frames = read_golden_frames(folder, task);
  if (frames.index.empty())
    return report;
  GoldenReplay replay(folder, task, options.models);
  PixelOptions pixels = options.pixels;
  pixels.height = frames.height;
  pixels.width = frames.width;
  pixels.camera = std::to_string(frames.camera);
  pixels.grey = false;
  pixels.effects = true;
  const auto renderer = make_renderer(replay.physics(), pixels, PixelLayout::channels_last);
  std::vector<std::uint8_t> drawn(renderer->bytes());
  const RecordedTable actions = replay.get("actions", replay.spec().action.size());
  replay.begin();
  const int last = frames.index.rbegin()->first;
  for (int step = 0; step <= last; ++step) {
    if (step > 0) {
      if (static_cast<std::size_t>(step) > actions.rows)
        break;
      replay.step(actions.row(static_cast<std::size_t>(step) - 1));
    }
    const auto recorded = frames.at(step);
    if (recorded.empty())
      continue;
    renderer->draw(drawn);
    add_picture(recorded, drawn, {frames.height, frames.width, 3}, static_cast<std::uint64_t>(step),
                report);
  }
  finish(report);
  return report;
}

} // namespace troupe::env

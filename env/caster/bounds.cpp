#include "env/caster/bounds.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::env::caster {

namespace {

constexpr float kBlock = 4;             // in pixels
constexpr float kMargin = .6F / kBlock; // blocks; samples are up to .375 pixels off the centre

} // namespace

SpanBuilder::SpanBuilder(const Frame& frame)
    : frame_(frame),
      scale_x_(1 / (frame.camera.du * kBlock)),
      scale_y_(1 / (frame.camera.dv * kBlock)),
      near_(std::max(frame.camera.near, 1e-6F)) {}

CameraPoint SpanBuilder::to_camera(const float* world) const {
  const Camera& camera = frame_.camera;
  const float d[3] = {world[0] - camera.eye[0], world[1] - camera.eye[1], world[2] - camera.eye[2]};
  const auto along = [&](const std::array<float, 3>& axis) {
    return d[0] * axis[0] + d[1] * axis[1] + d[2] * axis[2];
  };
  return {along(camera.right), along(camera.up), along(camera.forward)};
}

SpanBuilder::Point SpanBuilder::project(const CameraPoint& point) const {
  const float depth = frame_.camera.orthographic ? 1 : point.z;
  return {(point.x / depth - frame_.camera.u0) * scale_x_,
          (frame_.camera.v0 - point.y / depth) * scale_y_};
}

template <class Widen>
void SpanBuilder::add_rows(SpanSet& set, int item, float top, float bottom, Widen&& widen) const {
  const auto rows = static_cast<float>(frame_.block_rows);
  const auto columns = static_cast<float>(frame_.block_columns);
  top -= kMargin;
  bottom += kMargin;
  if (!(top < rows && bottom > 0))
    return;
  SpanItem added{.item = item,
                 .first_row = static_cast<int>(std::max(top, 0.0F)),
                 .last_row =
                     std::min(static_cast<int>(std::min(bottom, rows)), frame_.block_rows - 1),
                 .ranges = set.ranges.size()};
  bool seen = false;
  for (int row = added.first_row; row <= added.last_row; ++row) {
    float left = 1e30F;
    float right = -1e30F;
    widen(static_cast<float>(row) - kMargin, static_cast<float>(row) + 1 + kMargin, left, right);
    left -= kMargin;
    right += kMargin;
    BlockRange range;
    if (left < columns && right > 0) {
      range.first = static_cast<std::uint16_t>(std::max(left, 0.0F));
      range.last = static_cast<std::uint16_t>(std::min(right, columns - 1));
      seen = true;
    }
    set.ranges.push_back(range);
  }
  if (seen)
    set.items.push_back(added);
  else
    set.ranges.resize(added.ranges);
}

void SpanBuilder::add_everywhere(SpanSet& set, int item) const {
  add_rows(set, item, 0, static_cast<float>(frame_.block_rows),
           [&](float, float, float& left, float& right) {
             left = 0;
             right = static_cast<float>(frame_.block_columns);
           });
}

void SpanBuilder::add_round(SpanSet& set, int item, Point a, Point b, float radius) const {
  if (a.y > b.y)
    std::swap(a, b);
  const float dx = b.x - a.x;
  const float dy = b.y - a.y;
  const float length = std::sqrt(dx * dx + dy * dy);
  const bool long_enough = length > 1e-6F;
  const float nx = long_enough ? dy / length * radius : 0; // normal to the segment
  const float ny = long_enough ? -dx / length * radius : 0;
  const float slope = dy > 1e-6F ? dx / dy : 0;
  const auto disc = [&](const Point& c, float top, float bottom, float& left, float& right) {
    const float y = std::clamp(c.y, top, bottom) - c.y;
    const float h = radius * radius - y * y;
    if (h < 0)
      return;
    const float half = std::sqrt(h);
    left = std::min(left, c.x - half);
    right = std::max(right, c.x + half);
  };
  const auto edge = [&](float ox, float oy, float top, float bottom, float& left, float& right) {
    const float y0 = a.y + oy;
    const float y1 = b.y + oy;
    const float from = std::max(top, y0);
    const float to = std::min(bottom, y1);
    if (from > to)
      return;
    const float x0 = a.x + ox;
    const float at_from = dy > 1e-6F ? x0 + (from - y0) * slope : x0;
    const float at_to = dy > 1e-6F ? x0 + (to - y0) * slope : x0 + dx;
    left = std::min({left, at_from, at_to});
    right = std::max({right, at_from, at_to});
  };
  add_rows(set, item, a.y - radius, b.y + radius,
           [&](float top, float bottom, float& left, float& right) {
             disc(a, top, bottom, left, right);
             disc(b, top, bottom, left, right);
             if (long_enough) {
               edge(nx, ny, top, bottom, left, right);
               edge(-nx, -ny, top, bottom, left, right);
             }
           });
}

void SpanBuilder::add_capsule(SpanSet& set, int item, const CameraPoint& a, const CameraPoint& b,
                              float radius) const {
  if (std::max(a.z, b.z) + radius < near_)
    return;
  if (frame_.camera.orthographic) {
    add_round(set, item, project(a), project(b), radius * std::max(scale_x_, scale_y_));
    return;
  }
  float widest = 0; // radius of the larger ball's circle in the picture
  for (const CameraPoint& point : {a, b}) {
    const float across = point.x * point.x + point.y * point.y;
    const float squared = across + point.z * point.z - radius * radius;
    if (!(squared > 0) || point.z <= near_) {
      add_everywhere(set, item);
      return;
    }
    const float tangent = std::sqrt(across) / point.z; // of the centre's angle from the axis
    const float half = radius / std::sqrt(squared);    // tangent of half the ball's angle
    const float rest = 1 - tangent * half;
    if (rest < 1e-3F) {
      add_everywhere(set, item);
      return;
    }
    widest = std::max(widest, (tangent + half) / rest - tangent);
  }
  add_round(set, item, project(a), project(b), widest * std::max(scale_x_, scale_y_));
}

void SpanBuilder::add_edges(SpanSet& set, int item, std::span<const Point> points,
                            std::span<const std::pair<int, int>> edges) const {
  float top = 1e30F;
  float bottom = -1e30F;
  for (const Point& point : points) {
    top = std::min(top, point.y);
    bottom = std::max(bottom, point.y);
  }
  add_rows(set, item, top, bottom,
           [&](float band_top, float band_bottom, float& left, float& right) {
             for (const auto& [from, to] : edges) {
               Point p = points[static_cast<std::size_t>(from)];
               Point q = points[static_cast<std::size_t>(to)];
               if (p.y > q.y)
                 std::swap(p, q);
               if (p.y > band_bottom || q.y < band_top)
                 continue;
               const float slope = q.y - p.y > 1e-6F ? (q.x - p.x) / (q.y - p.y) : 0;
               const float x0 = p.y < band_top ? p.x + (band_top - p.y) * slope : p.x;
               const float x1 = q.y > band_bottom ? p.x + (band_bottom - p.y) * slope : q.x;
               left = std::min({left, x0, x1});
               right = std::max({right, x0, x1});
             }
           });
}

void SpanBuilder::add_hull(SpanSet& set, int item, std::span<const CameraPoint> corners,
                           std::span<const std::pair<int, int>> edges) const {
  std::array<Point, 8> points;
  int behind = 0;
  const std::size_t count = std::min(corners.size(), points.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (corners[i].z < near_)
      ++behind;
    else
      points[i] = project(corners[i]);
  }
  if (behind == static_cast<int>(count))
    return;
  if (behind > 0)
    add_everywhere(set, item);
  else
    add_edges(set, item, std::span(points).first(count), edges);
}

void SpanBuilder::add_polygon(SpanSet& set, int item, std::span<const CameraPoint> corners) const {
  constexpr std::size_t kMost = 8;
  std::array<Point, 2 * kMost> points;
  std::array<std::pair<int, int>, 2 * kMost> edges;
  const float near = frame_.camera.orthographic ? -1e30F : near_;
  std::size_t count = 0;
  const std::size_t size = std::min(corners.size(), kMost);
  for (std::size_t i = 0; i < size; ++i) {
    const CameraPoint& p = corners[i];
    const CameraPoint& q = corners[(i + 1) % size];
    if (p.z >= near)
      points[count++] = project(p);
    if ((p.z >= near) != (q.z >= near)) {
      const float part = (near - p.z) / (q.z - p.z);
      points[count++] = project({p.x + part * (q.x - p.x), p.y + part * (q.y - p.y), near});
    }
  }
  if (count < 3)
    return;
  for (std::size_t i = 0; i < count; ++i)
    edges[i] = {static_cast<int>(i), static_cast<int>((i + 1) % count)};
  add_edges(set, item, std::span(points).first(count), std::span(edges).first(count));
}

} // namespace troupe::env::caster

#pragma once

#include <span>

#include "env/caster/frame.hpp"

namespace troupe::env::caster {

/// A point in the camera's frame, in metres: x to the right, y up, z forward.
struct CameraPoint {
  float x = 0;
  float y = 0;
  float z = 0;
};

/// Finds the 4x4 blocks of pixels that an item may cover, so that all other blocks can skip it.
/// Each add function adds `item` to the set unless it is outside the picture. The bounds are half a
/// pixel too large, because samples are not at the pixels' centres.
class SpanBuilder {
public:
  explicit SpanBuilder(const Frame& frame);

  CameraPoint to_camera(const float* world) const;
  /// Adds the convex hull of two balls with the same radius.
  void add_capsule(SpanSet& set, int item, const CameraPoint& a, const CameraPoint& b,
                   float radius) const;
  /// Adds the convex hull of `corners`; edge i joins corners edges[i].first and edges[i].second.
  void add_hull(SpanSet& set, int item, std::span<const CameraPoint> corners,
                std::span<const std::pair<int, int>> edges) const;
  /// Adds the part of a flat polygon that is in front of the camera. `corners`: in order, at most
  /// 8.
  void add_polygon(SpanSet& set, int item, std::span<const CameraPoint> corners) const;
  void add_everywhere(SpanSet& set, int item) const;

private:
  struct Point { // in blocks, to the right and down
    float x = 0;
    float y = 0;
  };
  Point project(const CameraPoint& point) const;
  void add_edges(SpanSet& set, int item, std::span<const Point> points,
                 std::span<const std::pair<int, int>> edges) const;
  void add_round(SpanSet& set, int item, Point a, Point b, float radius) const;
  template <class Widen>
  void add_rows(SpanSet& set, int item, float top, float bottom, Widen&& widen) const;

  const Frame& frame_;
  float scale_x_ = 1; // blocks per u
  float scale_y_ = 1;
  float near_ = 0;
};

} // namespace troupe::env::caster

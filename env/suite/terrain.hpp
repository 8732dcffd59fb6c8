#pragma once

#include <span>
#include <vector>

#include "env/random.hpp"

namespace troupe::env {

/// Resizes a square grid [size, size] to [new_size, new_size] with the same corners by an
/// interpolating cubic spline in both directions, reflected at the borders, as scipy.ndimage.zoom
/// does. Sizes must be at least 2.
std::vector<double> enlarge_grid(std::span<const double> values, int size, int new_size);

/// Writes the heights of a bowl with bumps to `heights` [resolution, resolution]. A height is a
/// cosine of the distance from the middle times the interpolated value of `bumps` [size, size], and
/// is between 0 and about 1.
void fill_bowl(std::span<const double> bumps, int size, std::span<float> heights, int resolution);

/// Draws the terrain of the quadruped's escape task: fill_bowl() with a bump every 2 metres and
/// values uniform in [0.15, 1). `half_width`: distance from the middle of the field to its edge, in
/// metres.
void draw_bowl(Random& random, std::span<float> heights, int resolution, double half_width);

} // namespace troupe::env

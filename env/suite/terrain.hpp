#pragma once

#include <span>
#include <vector>

#include "env/random.hpp"

namespace troupe::env {

/// The square grid `values` [size, size] as a grid [new_size, new_size] with the same corners: the
/// interpolating cubic spline in both directions, reflected at the borders (what
/// scipy.ndimage.zoom computes). Sizes are at least 2.
std::vector<double> enlarge_grid(std::span<const double> values, int size, int new_size);

/// Heights in [0, about 1] of a bowl with bumps into `heights` [resolution, resolution]: a cosine
/// of the distance from the middle, times bumps from `bumps` [size, size].
void fill_bowl(std::span<const double> bumps, int size, std::span<float> heights, int resolution);

/// The quadruped's escape: fill_bowl() with bumps of 2 metres and heights uniform in [0.15, 1), on
/// a field that reaches `half_width` metres from its middle.
void draw_bowl(Random& random, std::span<float> heights, int resolution, double half_width);

} // namespace troupe::env

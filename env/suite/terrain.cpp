#include "env/suite/terrain.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace troupe::env {

namespace {

constexpr double kLowestBump = .15; // 1 would be smooth
constexpr double kBumpMetres = 2;   // distance between bumps
constexpr double kHole = .04;       // radius of the flat middle relative to the half width

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

/// Computes the coefficients of the cubic B-spline through `line`, reflected about its first and
/// last value. Solves (c[i-1] + 4 c[i] + c[i+1]) / 6 = f[i] with c[-1] = c[1], c[n] = c[n-2] by
/// elimination.
void to_spline(std::span<double> line) {
  const std::size_t n = line.size();
  std::vector<double> above(n); // remaining entries above the diagonal
  above[0] = 2.0 / 4;
  line[0] *= 6.0 / 4;
  for (std::size_t i = 1; i < n; ++i) {
    const double below = i + 1 == n ? 2 : 1;
    const double diagonal = 4 - below * above[i - 1];
    above[i] = 1 / diagonal;
    line[i] = (6 * line[i] - below * line[i - 1]) / diagonal;
  }
  for (std::size_t i = n - 1; i-- > 0;)
    line[i] -= above[i] * line[i + 1];
}

/// The four coefficients that determine the spline's value at one point, and their weights.
struct Stencil {
  std::array<std::size_t, 4> at;
  std::array<double, 4> weight;
};

Stencil stencil(double x, int size) {
  const int cell = std::clamp(static_cast<int>(std::floor(x)), 0, size - 2);
  const double t = x - cell;
  const double s = 1 - t;
  Stencil result{{},
                 {s * s * s / 6, (4 - 6 * t * t + 3 * t * t * t) / 6,
                  (4 - 6 * s * s + 3 * s * s * s) / 6, t * t * t / 6}};
  for (int k = 0; k < 4; ++k) {
    const int i = std::abs(cell - 1 + k); // reflected at 0
    result.at[index(k)] = index(i < size ? i : 2 * (size - 1) - i);
  }
  return result;
}

/// Resizes the rows of a grid [size, columns] to new_columns and transposes the result:
/// [new_columns, size].
std::vector<double> enlarge_rows(std::span<const double> values, int size, int columns,
                                 int new_columns) {
  std::vector<Stencil> places;
  for (int j = 0; j < new_columns; ++j)
    places.push_back(stencil(j * (columns - 1.0) / (new_columns - 1.0), columns));
  std::vector<double> turned(index(size) * index(new_columns));
  std::vector<double> line(index(columns));
  for (std::size_t row = 0; row < index(size); ++row) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(row * line.size()), line.size(),
                line.begin());
    to_spline(line);
    for (std::size_t j = 0; j < places.size(); ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < 4; ++k)
        sum += places[j].weight[k] * line[places[j].at[k]];
      turned[j * index(size) + row] = sum;
    }
  }
  return turned;
}

} // namespace

std::vector<double> enlarge_grid(std::span<const double> values, int size, int new_size) {
  const std::vector<double> turned = enlarge_rows(values, size, size, new_size);
  return enlarge_rows(turned, new_size, size, new_size);
}

void fill_bowl(std::span<const double> bumps, int size, std::span<float> heights, int resolution) {
  const std::vector<double> smooth = enlarge_grid(bumps, size, resolution);
  const auto coordinate = [&](int i) { return -1 + 2.0 * i / (resolution - 1); };
  for (int row = 0; row < resolution; ++row)
    for (int column = 0; column < resolution; ++column) {
      const double radius = std::clamp(std::hypot(coordinate(row), coordinate(column)), kHole, 1.0);
      const double bowl = (1 - std::cos(2 * std::numbers::pi * radius)) / 2;
      const std::size_t at = index(row) * index(resolution) + index(column);
      heights[at] = static_cast<float>(bowl * smooth[at]);
    }
}

void draw_bowl(Random& random, std::span<float> heights, int resolution, double half_width) {
  const int size = static_cast<int>(2 * half_width / kBumpMetres);
  std::vector<double> bumps(index(size) * index(size));
  for (double& bump : bumps)
    bump = random.uniform(kLowestBump, 1);
  fill_bowl(bumps, size, heights, resolution);
}

} // namespace troupe::env

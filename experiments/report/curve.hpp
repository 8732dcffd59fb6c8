#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::experiments {

/// A point of a return curve: environment steps and mean return, with its least and greatest. Of a
/// run on data: updates and what was measured then.
struct CurvePoint {
  double environment_steps = 0;
  double value = 0;
  double minimum = 0;
  double maximum = 0;
};

/// The evaluations in a metrics.csv: column `value` along another one. A resumed run's rows replace
/// those it had already been past. Throws std::runtime_error when the file cannot be read or has no
/// such columns.
std::vector<CurvePoint> read_curve(const std::filesystem::path& metrics_csv,
                                   const std::string& value = "evaluation_return",
                                   const std::string& along = "environment_steps");

/// A self-contained SVG of 640 x 360: the line, a band from least to greatest, axes with round
/// numbers. `title` and `unit` are escaped. Points that are not finite are left out.
std::string curve_svg(const std::vector<CurvePoint>& curve, const std::string& title,
                      const std::string& unit = "environment steps");

/// One of several lines in a picture.
struct CurveLine {
  std::string name;
  std::vector<CurvePoint> points;
};

/// The same for several lines, each in a colour of its own, with a legend.
std::string curves_svg(const std::vector<CurveLine>& lines, const std::string& title,
                       const std::string& unit = "environment steps");

/// Text as it stands in HTML or XML.
std::string escaped(const std::string& text);

/// Round numbers that cover [low, high], about `count` of them.
std::vector<double> round_ticks(double low, double high, int count);

} // namespace troupe::experiments

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::experiments {

/// A point of a return curve: environment steps and the mean, least and greatest return. For a run
/// on data: updates and the value measured there.
struct CurvePoint {
  double environment_steps = 0;
  double value = 0;
  double minimum = 0;
  double maximum = 0;
};

/// Reads the evaluations of a metrics.csv: column `value` over column `along`. A resumed run's rows
/// replace earlier rows at the same or later steps. There are no points if the file is missing or
/// ends within its header, as when a run dies at its start. Throws std::runtime_error if the file
/// cannot be read or its header lacks one of the columns.
std::vector<CurvePoint> read_curve(const std::filesystem::path& metrics_csv,
                                   const std::string& value = "evaluation_return",
                                   const std::string& along = "environment_steps");

/// Style of a page with curves, which are drawn for a light page: inverts them on a dark one, so
/// that white becomes the browser's dark background, and keeps their hues.
inline constexpr const char* kCurveStyle =
    "@media(prefers-color-scheme:dark){svg{filter:invert(.93) hue-rotate(180deg)}}";

/// Draws a self-contained SVG of 640 x 360: the line, a band from least to greatest, axes with
/// round numbers. `title` and `unit` are escaped. Points that are not finite are left out.
std::string curve_svg(const std::vector<CurvePoint>& curve, const std::string& title,
                      const std::string& unit = "environment steps");

/// One of several curves in a plot.
struct CurveLine {
  std::string name;
  std::vector<CurvePoint> points;
};

/// Like curve_svg(), but for several lines in different colours, with a legend.
std::string curves_svg(const std::vector<CurveLine>& lines, const std::string& title,
                       const std::string& unit = "environment steps");

/// Escapes text for HTML or XML.
std::string escaped(const std::string& text);

/// About `count` round numbers that cover [low, high].
std::vector<double> round_ticks(double low, double high, int count);

} // namespace troupe::experiments

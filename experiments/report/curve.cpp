#include "experiments/report/curve.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "env/text/number_in.hpp"
#include "experiments/run_folder/metrics_file.hpp"

namespace troupe::experiments {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 360;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 36;
constexpr double kBottom = 48;

std::optional<double> number(const std::string& text) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return env::number_in<double>(text, -kMost, kMost);
}

std::string tick_text(double value) {
  char text[32];
  if (std::abs(value) >= 1e6) {
    std::snprintf(text, sizeof text, "%gM", value / 1e6);
  } else if (std::abs(value) >= 1e4) {
    std::snprintf(text, sizeof text, "%gk", value / 1e3);
  } else {
    std::snprintf(text, sizeof text, "%g", value);
  }
  return text;
}

std::string coordinates(double x, double y) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f,%.1f ", x, y);
  return text;
}

/// Maps data to coordinates in the picture.
struct Axes {
  double x0, x1, y0, y1;
  double x(double value) const {
    return kLeft + (value - x0) / (x1 - x0) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom - (value - y0) / (y1 - y0) * (kHeight - kTop - kBottom);
  }
};

std::string label(double x, double y, const std::string& anchor, const std::string& text) {
  char at[96];
  std::snprintf(at, sizeof at, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y,
                anchor.c_str());
  return at + escaped(text) + "</text>\n";
}

std::string grid(const Axes& axes, const std::vector<double>& steps,
                 const std::vector<double>& values, const std::string& unit) {
  std::string out;
  char line[160];
  for (const double value : values) {
    std::snprintf(line, sizeof line,
                  "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                  kLeft, axes.y(value), kWidth - kRight, axes.y(value));
    out += line + label(kLeft - 8, axes.y(value) + 4, "end", tick_text(value));
  }
  for (const double step : steps) {
    out += label(axes.x(step), kHeight - kBottom + 18, "middle", tick_text(step));
  }
  return out + label((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", unit);
}

} // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '&':
      out += "&amp;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += c;
    }
  }
  return out;
}

std::vector<double> round_ticks(double low, double high, int count) {
  if (!(high > low)) {
    high = low + 1;
  }
  const double rough = (high - low) / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9);
  for (int i = 0; i <= 10 * count; ++i) {
    ticks.push_back((first + i) * step);
    if (ticks.back() >= high - step * 1e-9) {
      break;
    }
  }
  return ticks;
}

std::vector<CurvePoint> read_curve(const std::filesystem::path& metrics_csv,
                                   const std::string& value, const std::string& along) {
  std::error_code error;
  if (!std::filesystem::exists(metrics_csv, error) && !error) {
    return {};
  }
  std::ifstream in(metrics_csv, std::ios::binary);
  if (!in) {
    throw std::runtime_error(metrics_csv.string() + ": cannot be read");
  }
  std::ostringstream text;
  text << in.rdbuf();
  const auto records = read_csv(text.str());
  if (records.empty()) {
    return {};
  }
  const auto column = [&](const std::string& name) {
    const auto found = std::find(records[0].begin(), records[0].end(), name);
    if (found == records[0].end()) {
      throw std::runtime_error(metrics_csv.string() + ": has no column " + name);
    }
    return static_cast<std::size_t>(found - records[0].begin());
  };
  const std::size_t steps = column(along);
  const std::size_t mean = column(value);
  const bool has_band = value == "evaluation_return";
  const std::size_t least = has_band ? column(value + "_min") : mean;
  const std::size_t most = has_band ? column(value + "_max") : mean;
  std::vector<CurvePoint> curve;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const auto& record = records[i];
    if (record.size() <= std::max({steps, mean, least, most})) {
      continue;
    }
    const auto x = number(record[steps]);
    const auto y = number(record[mean]);
    if (!x || !y) {
      continue;
    }
    while (!curve.empty() && curve.back().environment_steps >= *x) {
      curve.pop_back();
    }
    curve.push_back(
        {*x, *y, number(record[least]).value_or(*y), number(record[most]).value_or(*y)});
  }
  return curve;
}

namespace {

std::vector<CurvePoint> finite(const std::vector<CurvePoint>& all) {
  std::vector<CurvePoint> curve;
  std::copy_if(all.begin(), all.end(), std::back_inserter(curve), [](const CurvePoint& p) {
    return std::isfinite(p.environment_steps) && std::isfinite(p.value) && std::isfinite(p.minimum)
           && std::isfinite(p.maximum);
  });
  return curve;
}

/// Draws the line, its band and, if there are few points, a dot for each.
std::string drawn(const std::vector<CurvePoint>& curve, const Axes& axes,
                  const std::string& colour) {
  constexpr std::size_t kMostDots = 100;
  std::string line;
  std::string band;
  for (const CurvePoint& p : curve) {
    line += coordinates(axes.x(p.environment_steps), axes.y(p.value));
    band += coordinates(axes.x(p.environment_steps), axes.y(p.maximum));
  }
  for (auto p = curve.rbegin(); p != curve.rend(); ++p)
    band += coordinates(axes.x(p->environment_steps), axes.y(p->minimum));
  std::string out =
      "<polygon points=\"" + band + "\" fill=\"" + colour + "\" fill-opacity=\"0.2\"/>\n";
  out += "<polyline points=\"" + line + "\" fill=\"none\" stroke=\"" + colour
         + "\" stroke-width=\"2\"/>\n";
  for (const CurvePoint& p : curve) {
    if (curve.size() > kMostDots)
      break;
    char dot[96];
    std::snprintf(dot, sizeof dot, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                  axes.x(p.environment_steps), axes.y(p.value), colour.c_str());
    out += dot;
  }
  return out;
}

/// Colours that people with colour blindness can distinguish, too (Okabe and Ito 2008). The first
/// is the colour of single curves.
std::string colour_of(std::size_t number) {
  static const std::vector<std::string> kColours = {"#1f77b4", "#d55e00", "#009e73", "#cc79a7",
                                                    "#e69f00", "#56b4e9", "#000000", "#b2a800"};
  return kColours[number % kColours.size()];
}

} // namespace

std::string curve_svg(const std::vector<CurvePoint>& curve, const std::string& title,
                      const std::string& unit) {
  return curves_svg({{"", curve}}, title, unit);
}

std::string curves_svg(const std::vector<CurveLine>& lines, const std::string& title,
                       const std::string& unit) {
  double last_step = 1;
  double low = 0;
  double high = 1;
  bool empty = true;
  std::vector<std::vector<CurvePoint>> curves;
  for (const CurveLine& line : lines) {
    curves.push_back(finite(line.points));
    for (const CurvePoint& p : curves.back()) {
      last_step = std::max(last_step, p.environment_steps);
      low = std::min(low, p.minimum);
      high = std::max(high, p.maximum);
      empty = false;
    }
  }
  const auto steps = round_ticks(0, last_step, 5);
  const auto values = round_ticks(low, high, 5);
  const Axes axes{0, steps.back(), values.front(), values.back()};
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 360\" width=\"640\" "
      "height=\"360\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"640\" height=\"360\" fill=\"white\"/>\n";
  out += grid(axes, steps, values, unit);
  out += label(kWidth / 2, 22, "middle", title);
  if (empty)
    out += label(kWidth / 2, kHeight / 2, "middle", "no evaluation yet");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!curves[i].empty())
      out += drawn(curves[i], axes, colour_of(i));
    if (lines.size() > 1)
      out += "<g fill=\"" + colour_of(i) + "\">"
             + label(kLeft + 10, kTop + 14 * static_cast<double>(i + 1), "start", lines[i].name)
             + "</g>\n";
  }
  return out + "</svg>\n";
}

} // namespace troupe::experiments

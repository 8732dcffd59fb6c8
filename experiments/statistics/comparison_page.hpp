#pragma once

#include <string>

#include "experiments/statistics/comparison.hpp"

namespace troupe::experiments {

/// The tables of a comparison: all methods over all tasks, and each task with its published scores.
std::string comparison_markdown(const Comparison& comparison);
std::string comparison_latex(const Comparison& comparison); // for the package booktabs

/// A page without scripts or external links: tables, curves, performance profiles, probabilities of
/// improvement, the runs with their newest videos, and the differences between configurations.
/// `machine` describes the machine that made the page.
std::string comparison_page(const Comparison& comparison, const std::string& machine);

} // namespace troupe::experiments

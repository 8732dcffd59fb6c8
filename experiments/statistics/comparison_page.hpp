#pragma once

#include <string>

#include "experiments/statistics/comparison.hpp"

namespace troupe::experiments {

/// The tables of a comparison: all methods over all tasks, and each task with what is published.
std::string comparison_markdown(const Comparison& comparison);
std::string comparison_latex(const Comparison& comparison); // with booktabs

/// One page without scripts or links to elsewhere: tables, curves, performance profiles,
/// probabilities of improvement, the runs with their newest videos, and how configurations differ.
/// `machine`: what made the page.
std::string comparison_page(const Comparison& comparison, const std::string& machine);

} // namespace troupe::experiments

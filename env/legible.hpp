#pragma once

#include <string>
#include <string_view>

namespace troupe::env {

/// Makes text from outside safe for a terminal or a log. Control characters other than tab and
/// newline, which a terminal would obey, and bytes that are not UTF-8 are replaced by \x and two
/// hexadecimal digits.
std::string legible(std::string_view text);

/// Like legible(), but on one line: newlines become \x0a, so that the text cannot pass for a log
/// line of ours.
std::string legible_line(std::string_view text);

} // namespace troupe::env

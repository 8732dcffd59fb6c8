#pragma once

#include <string_view>

#include "experiments/web/page_file.hpp"

namespace troupe::experiments::dashboard {

/// Finds a file of page/ by its path in the browser, such as "/" or "/style.css"; nullptr if there
/// is none.
const web::PageFile* find_page_file(std::string_view path);

} // namespace troupe::experiments::dashboard

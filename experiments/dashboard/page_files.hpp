#pragma once

#include <string>
#include <string_view>

namespace troupe::experiments::dashboard {

/// A file of page/, which is part of the program.
struct PageFile {
  std::string_view type; // "text/css; charset=utf-8"
  std::string_view text;
};

/// By its path in the browser, "/" or "/style.css"; nullptr if there is none.
const PageFile* find_page_file(std::string_view path);

} // namespace troupe::experiments::dashboard

#pragma once

#include <string_view>

#include "experiments/web/http.hpp"

namespace troupe::experiments::web {

/// A file of a page, embedded in the program (embed_page.cmake).
struct PageFile {
  std::string_view type; // "text/css; charset=utf-8"
  std::string_view text;
};

/// `file` is the file at the request's path; null if there is none.
inline Response page_reply(const Request& request, const PageFile* file) {
  if (file == nullptr)
    return error_response(404, request.path + ": there is no such page");
  return {.type = std::string(file->type), .body = std::string(file->text)};
}

} // namespace troupe::experiments::web

# cmake -DOUT=page_files.cpp -DNAMESPACE=dashboard "-DFILES=index.html;style.css" -P embed_page.cmake
#   Writes the source of <namespace>::find_page_file() with these files in it, byte for byte.
set(types_html "text/html; charset=utf-8")
set(types_css "text/css; charset=utf-8")
set(types_js "text/javascript; charset=utf-8")
set(types_svg "image/svg+xml")
set(arrays)
set(rows)
set(number 0)
foreach(file IN LISTS FILES)
  cmake_path(GET file FILENAME name)
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  string(REPLACE "." "" extension "${extension}")
  if(NOT DEFINED types_${extension})
    message(FATAL_ERROR "${file}: embed_page.cmake knows no type of .${extension}")
  endif()
  set(path "/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kFile${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${path}\", {\"${types_${extension}}\", text_of(kFile${number})}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUT}" "#include \"experiments/${NAMESPACE}/page_files.hpp\"

#include <map>

namespace troupe::experiments::${NAMESPACE} {
namespace {

${arrays}
template <std::size_t Size>
std::string_view text_of(const unsigned char (&bytes)[Size]) {
  return {reinterpret_cast<const char*>(bytes), Size};
}

} // namespace

const web::PageFile* find_page_file(std::string_view path) {
  static const std::map<std::string_view, web::PageFile> files = {
${rows}  };
  const auto found = files.find(path);
  return found == files.end() ? nullptr : &found->second;
}

} // namespace troupe::experiments::${NAMESPACE}
")

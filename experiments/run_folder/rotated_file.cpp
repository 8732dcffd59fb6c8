#include "experiments/run_folder/rotated_file.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace troupe::experiments {

namespace fs = std::filesystem;

RotatedFile::RotatedFile(fs::path path, std::int64_t most_bytes)
    : path_(std::move(path)), most_bytes_(std::max<std::int64_t>(most_bytes, 2)) {
  open();
}

void RotatedFile::open() {
  std::error_code error;
  const auto size = fs::file_size(path_, error);
  bytes_ = error ? 0 : static_cast<std::int64_t>(size);
  out_ = std::ofstream(path_, std::ios::app | std::ios::binary);
}

void RotatedFile::write(std::string_view line) {
  line = line.substr(0, static_cast<std::size_t>(most_bytes_ - 1));
  const auto more = static_cast<std::int64_t>(line.size()) + 1;
  if (bytes_ > 0 && bytes_ + more > most_bytes_) {
    out_.close();
    std::error_code ignored;
    fs::rename(path_, path_.string() + ".1", ignored);
    open();
  }
  if (!out_) { // the disk was full, or the folder did not exist
    open();
  }
  out_ << line << '\n' << std::flush;
  bytes_ += more;
}

} // namespace troupe::experiments

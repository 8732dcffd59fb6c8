#include "learner/data/formats/tar_writer.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <stdexcept>
#include <utility>

namespace troupe::learner::data {

TarWriter::TarWriter(std::filesystem::path path)
    : path_(std::move(path)), tar_(archive_write_new()) {
  if (tar_ == nullptr)
    throw std::runtime_error("libarchive could not start: no memory");
  try {
    check(archive_write_set_format_pax_restricted(tar_), "cannot be a tar archive");
    check(archive_write_open_filename(tar_, path_.c_str()), "cannot be opened");
  } catch (...) {
    archive_write_free(tar_);
    throw;
  }
}

TarWriter::~TarWriter() {
  archive_write_free(tar_);
}

void TarWriter::check(int result, const char* what) const {
  if (result != ARCHIVE_OK)
    throw std::runtime_error(
        path_.string() + ": " + what + ": "
        + (archive_error_string(tar_) != nullptr ? archive_error_string(tar_) : "unknown reason"));
}

void TarWriter::add(const std::string& name, std::span<const std::byte> bytes) {
  const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                       archive_entry_free);
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_mtime(entry.get(), 0, 0);
  check(archive_write_header(tar_, entry.get()), "cannot be written");
  const auto written = archive_write_data(tar_, bytes.data(), bytes.size());
  if (written < 0 || static_cast<std::size_t>(written) != bytes.size())
    check(ARCHIVE_FATAL, "cannot be written");
}

void TarWriter::finish() {
  check(archive_write_close(tar_), "cannot be finished");
}

} // namespace troupe::learner::data

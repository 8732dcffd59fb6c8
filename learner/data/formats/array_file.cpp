#include "learner/data/formats/array_file.hpp"

#include <ATen/ops/empty.h>

#include "learner/data/formats/open_dataset.hpp"

namespace troupe::learner::data {
namespace {

constexpr std::uint64_t kMostRowBytes = std::uint64_t{256} << 20;

/// Reads consecutive rows with one call.
class FileColumns final : public Dataset {
public:
  FileColumns(std::shared_ptr<const ArrayFile> file, std::vector<std::size_t> columns,
              std::int64_t rows)
      : file_(std::move(file)), columns_(std::move(columns)), rows_(rows) {}

  std::int64_t size() const override { return rows_; }
  TensorMap rows(const at::Tensor& numbers, std::int64_t) const override {
    const auto wanted = numbers.contiguous();
    const auto* number = wanted.const_data_ptr<std::int64_t>();
    TensorMap batch;
    for (const auto column : columns_) {
      const auto& array = file_->arrays()[column];
      auto sizes = array.shape;
      sizes[0] = wanted.size(0);
      auto result = at::empty(sizes, array.type);
      const auto row_bytes =
          wanted.size(0) == 0 ? 0 : result.nbytes() / static_cast<std::size_t>(wanted.size(0));
      auto* to = static_cast<char*>(result.mutable_data_ptr());
      for (std::int64_t i = 0, next = 0; i < wanted.size(0); i = next) {
        for (next = i + 1; next < wanted.size(0) && number[next] == number[next - 1] + 1;)
          ++next;
        file_->read(column, number[i], next - i, to + static_cast<std::size_t>(i) * row_bytes);
      }
      batch[array.name] = result;
    }
    return batch;
  }

private:
  std::shared_ptr<const ArrayFile> file_;
  std::vector<std::size_t> columns_;
  std::int64_t rows_;
};

void check_row(const FoundArray& array, const std::string& source) {
  if (!array.problem.empty())
    throw DataError(source + ": \"" + array.name + "\" " + array.problem);
  std::uint64_t bytes = c10::elementSize(array.type);
  for (std::size_t d = 1; d < array.shape.size(); ++d) {
    const auto length = static_cast<std::uint64_t>(array.shape[d]);
    if (length > 0 && bytes > kMostRowBytes / length)
      throw DataError(source + ": a row of \"" + array.name + "\" has more than "
                      + std::to_string(kMostRowBytes) + " bytes");
    bytes *= length;
  }
}

} // namespace

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::unique_ptr<DescribedDataset> make_file_table(std::shared_ptr<const ArrayFile> file,
                                                  DatasetInfo info, const DatasetOptions& options) {
  const auto source = options.path.string();
  const auto& arrays = file->arrays();
  const auto chosen = choose_arrays(arrays, options);
  info.rows = chosen.rows;
  for (const auto column : chosen.columns) {
    check_row(arrays[column], source);
    info.columns.push_back(column_of(arrays[column]));
  }
  at::Tensor label;
  if (chosen.label >= 0) {
    const auto which = static_cast<std::size_t>(chosen.label);
    check_row(arrays[which], source);
    if (static_cast<std::uint64_t>(chosen.rows) > kMostRowBytes)
      throw DataError(source + ": has " + std::to_string(chosen.rows) + " labels, more than "
                      + std::to_string(kMostRowBytes));
    label = at::empty({chosen.rows}, arrays[which].type);
    file->read(which, 0, chosen.rows, label.mutable_data_ptr());
  }
  auto columns = chosen.columns.empty()
                     ? nullptr
                     : std::make_unique<FileColumns>(file, chosen.columns, chosen.rows);
  return make_table(std::move(columns), label, std::move(info), {}, options);
}

} // namespace troupe::learner::data

#include <memory>
#include <stdexcept>
#include <utility>

#include <ATen/ops/from_blob.h>

#include "env/npz.hpp"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/formats/tables.hpp"
#include "learner/data/pictures/file.hpp"

namespace troupe::learner::data {
namespace {

at::ScalarType type_of(const env::NpyArray& array) {
  static const std::map<std::string, at::ScalarType> types = {
      {"<f8", at::kDouble}, {"<f4", at::kFloat}, {"<f2", at::kHalf},
      {"<i8", at::kLong},   {"<i4", at::kInt},   {"<i2", at::kShort},
      {"|i1", at::kChar},   {"|u1", at::kByte},  {"|b1", at::kBool}};
  return types.at(array.type); // the parser accepts only these
}

/// Takes over the bytes without copying them.
at::Tensor tensor_of_array(env::NpyArray array) {
  const auto type = type_of(array);
  const auto shape = array.shape;
  auto owner = std::make_shared<env::NpyArray>(std::move(array));
  return at::from_blob(
      owner->bytes.data(), shape, [owner](void*) {}, type);
}

std::map<std::string, env::NpyArray> read_arrays(const std::filesystem::path& path,
                                                 std::uint64_t bytes) {
  if (path.extension() != ".npy") {
    const std::size_t most = std::size_t{1} << 40; // NpzLimits already limits it by the file's size
    return env::read_npz(path.string(),
                         {.file_bytes = most, .array_bytes = most, .total_bytes = most});
  }
  std::vector<std::byte> content;
  File(path).read(0, bytes, content);
  return {{path.stem().string(), env::parse_npy(content, path.string())}};
}

} // namespace

std::unique_ptr<DescribedDataset> open_npz(const DatasetOptions& options) {
  DatasetInfo info{.format = "npz", .bytes = File(options.path).size()};
  std::map<std::string, env::NpyArray> arrays;
  try {
    arrays = read_arrays(options.path, info.bytes);
  } catch (const DataError&) {
    throw;
  } catch (const ReadError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw DataError(error.what());
  }
  std::vector<FoundArray> found;
  std::vector<at::Tensor> tensors;
  for (auto& [name, array] : arrays) {
    if (array.shape.empty())
      continue; // a single number has no rows
    found.push_back({name, array.shape, type_of(array)});
    tensors.push_back(tensor_of_array(std::move(array)));
  }
  const auto chosen = choose_arrays(found, options);
  info.rows = chosen.rows;
  TensorMap columns;
  for (const auto i : chosen.columns) {
    columns[found[i].name] = tensors[i];
    info.columns.push_back(column_of(found[i]));
  }
  const auto label =
      chosen.label >= 0 ? tensors[static_cast<std::size_t>(chosen.label)] : at::Tensor();
  return make_table(columns.empty() ? nullptr : std::make_unique<TensorDataset>(columns), label,
                    std::move(info), {}, options);
}

} // namespace troupe::learner::data

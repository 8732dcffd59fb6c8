#include "learner/data/formats/tables.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <ATen/ops/empty.h>

#include "env/text/joined.hpp"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/formats/picture_reader.hpp"

namespace troupe::learner::data {
namespace {

/// NumPy's name for a type.
std::string type_name(at::ScalarType type) {
  switch (type) {
  case at::kByte:
    return "uint8";
  case at::kChar:
    return "int8";
  case at::kShort:
    return "int16";
  case at::kInt:
    return "int32";
  case at::kLong:
    return "int64";
  case at::kHalf:
    return "float16";
  case at::kFloat:
    return "float32";
  case at::kDouble:
    return "float64";
  case at::kBool:
    return "bool";
  default:
    return c10::toString(type);
  }
}

class Table final : public DescribedDataset {
public:
  Table(std::unique_ptr<Dataset> columns, at::Tensor label, DatasetInfo info, const BadList& bad,
        const DatasetOptions& options)
      : columns_(std::move(columns)),
        info_(std::move(info)),
        bad_(info_.rows, options.tolerate, options.tell) {
    if (label.defined())
      label_ = std::make_unique<TensorDataset>(TensorMap{{"label", std::move(label)}});
    for (const auto& [row, message] : bad)
      bad_.add(row, message);
    if (bad_.count() == info_.rows)
      throw DataError(options.path.string() + ": no row is good");
    if (bad_.count() > 0)
      find_stand_ins();
  }

  std::int64_t size() const override { return info_.rows; }
  TensorMap rows(const at::Tensor& numbers, std::int64_t epoch) const override {
    const auto wanted = good(numbers);
    auto batch = columns_ ? columns_->rows(wanted, epoch) : TensorMap{};
    if (label_)
      batch.merge(label_->rows(wanted, epoch));
    return batch;
  }
  DatasetInfo info() const override {
    auto info = info_;
    info.bad_rows = bad_.count();
    info.messages = bad_.messages();
    return info;
  }

private:
  void find_stand_ins() {
    instead_.resize(static_cast<std::size_t>(info_.rows));
    std::int64_t next = 0; // the next good row, wrapping around at the end
    while (bad_.contains(next))
      ++next;
    for (auto row = info_.rows; row-- > 0;) {
      if (!bad_.contains(row))
        next = row;
      instead_[static_cast<std::size_t>(row)] = next;
    }
  }

  at::Tensor good(const at::Tensor& numbers) const {
    if (instead_.empty())
      return numbers;
    auto result = at::empty({numbers.size(0)}, at::kLong);
    const auto wanted = numbers.contiguous();
    for (std::int64_t i = 0; i < wanted.size(0); ++i)
      result.mutable_data_ptr<std::int64_t>()[i] =
          instead_.at(static_cast<std::size_t>(wanted.const_data_ptr<std::int64_t>()[i]));
    return result;
  }

  std::unique_ptr<Dataset> columns_;
  std::unique_ptr<TensorDataset> label_;
  DatasetInfo info_;
  RowErrorPolicy bad_;
  std::vector<std::int64_t> instead_; // the row to use for each row; empty if all are good
};

bool all_classes(const at::Tensor& label) {
  if (!label.is_floating_point())
    return true;
  const auto wide = label.to(at::kDouble).contiguous();
  const auto* first = wide.const_data_ptr<double>();
  return std::all_of(first, first + wide.numel(), is_class);
}

/// Returns the label with whole numbers from 0. Other values are added to `bad` and become 0.
at::Tensor checked_label(const at::Tensor& given, std::int64_t classes, BadList& bad,
                         const std::string& source) {
  auto label = given.to(at::kLong).contiguous().clone();
  std::vector<bool> known(static_cast<std::size_t>(label.size(0)));
  for (const auto& one : bad)
    known[static_cast<std::size_t>(one.first)] = true;
  const std::int64_t most = classes > 0 ? std::min(classes, kMostClasses) : kMostClasses;
  auto* value = label.mutable_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < label.size(0); ++row)
    if (value[row] < 0 || value[row] >= most) {
      if (!known[static_cast<std::size_t>(row)])
        bad.emplace_back(
            row, source + ": row " + std::to_string(row) + ": label " + std::to_string(value[row])
                     + " is out of range; it must be from 0 to " + std::to_string(most - 1));
      value[row] = 0;
    }
  return label;
}

} // namespace

bool is_class(double label) {
  return std::trunc(label) == label && label >= 0 && label < static_cast<double>(kMostClasses);
}

std::unique_ptr<DescribedDataset> make_table(std::unique_ptr<Dataset> columns, at::Tensor label,
                                             DatasetInfo info, BadList bad,
                                             const DatasetOptions& options) {
  const std::string source = options.path.string();
  if (info.rows < 1)
    throw DataError(source + ": has no rows");
  if (label.defined()) {
    if (all_classes(label)) {
      const auto classes = options.classes > 0 ? options.classes : info.classes;
      label = checked_label(label, classes, bad, source);
      info.classes = classes > 0 ? classes : label.max().item<std::int64_t>() + 1;
    }
    info.columns.push_back({"label", type_name(label.scalar_type()), {}});
  }
  std::sort(bad.begin(), bad.end());
  return std::make_unique<Table>(std::move(columns), std::move(label), std::move(info), bad,
                                 options);
}

ChosenArrays choose_arrays(const std::vector<FoundArray>& found, const DatasetOptions& options) {
  const std::string source = options.path.string();
  const auto named = [&](const std::string& name) {
    const auto at =
        std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.name == name; });
    return at == found.end() ? std::ptrdiff_t{-1} : at - found.begin();
  };
  const auto must_find = [&](const std::string& name) {
    if (const auto at = named(name); at >= 0)
      return at;
    throw std::invalid_argument(
        source + ": has no array \"" + name + "\" of numbers; it has "
        + (found.empty() ? "none" : env::joined(found, ", ", &FoundArray::name)));
  };
  if (found.empty())
    throw DataError(source + ": has no array of numbers with rows");
  ChosenArrays chosen;
  chosen.label = options.label.empty() ? named("label") : must_find(options.label);
  std::vector<std::size_t> wanted;
  for (const auto& name : options.columns)
    wanted.push_back(static_cast<std::size_t>(must_find(name)));
  if (options.columns.empty())
    for (std::size_t i = 0; i < found.size(); ++i)
      wanted.push_back(i);
  const auto& first =
      found[chosen.label >= 0 ? static_cast<std::size_t>(chosen.label) : wanted.front()];
  chosen.rows = first.shape.at(0);
  if (chosen.label >= 0 && first.shape.size() != 1)
    throw std::invalid_argument(source + ": the label \"" + first.name + "\" has "
                                + std::to_string(first.shape.size())
                                + " dimensions; it must have one number for each row");
  for (const auto i : wanted) {
    if (static_cast<std::ptrdiff_t>(i) == chosen.label)
      continue;
    if (found[i].shape.at(0) == chosen.rows)
      chosen.columns.push_back(i);
    else if (!options.columns.empty())
      throw std::invalid_argument(source + ": \"" + found[i].name + "\" has "
                                  + std::to_string(found[i].shape[0]) + " rows, \"" + first.name
                                  + "\" " + std::to_string(chosen.rows)
                                  + "; columns must have the same number");
  }
  return chosen;
}

Column column_of(const FoundArray& array) {
  return {array.name, type_name(array.type), {array.shape.begin() + 1, array.shape.end()}};
}

} // namespace troupe::learner::data

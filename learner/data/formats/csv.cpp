#include <algorithm>
#include <cmath>
#include <istream>
#include <map>
#include <optional>
#include <stdexcept>
#include <streambuf>

#include <ATen/ops/empty.h>

#include "env/text/number_in.hpp"
#include "learner/data/formats/csv_parser.hpp"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/formats/tables.hpp"
#include "learner/data/pictures/file.hpp"

namespace troupe::learner::data {
namespace {

/// The text of a File, for a stream that throws its exceptions.
class TextOfFile final : public std::streambuf {
public:
  explicit TextOfFile(const std::filesystem::path& path) : file_(path) {}
  std::uint64_t size() const { return file_.size(); }

protected:
  int_type underflow() override {
    const auto count = std::min<std::uint64_t>(kBlockBytes, file_.size() - read_);
    if (count == 0)
      return traits_type::eof();
    file_.read(read_, count, block_);
    read_ += count;
    char* const begin = reinterpret_cast<char*>(block_.data());
    setg(begin, begin, begin + count);
    return traits_type::to_int_type(*begin);
  }

private:
  static constexpr std::uint64_t kBlockBytes = 1 << 16;

  const File file_;
  std::uint64_t read_ = 0; // bytes
  std::vector<std::byte> block_;
};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string::npos ? std::string()
                                    : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template <typename T>
std::optional<T> number_in(const std::string& field) {
  const auto text = trimmed(field);
  return env::number_in<T>(std::string_view(text).substr(text.starts_with('+') ? 1 : 0));
}

bool is_number(const std::string& field) {
  return number_in<double>(field).has_value();
}

/// A label that is a whole number; with a fraction, as in "2.0", only if it can be a class.
std::optional<std::int64_t> whole_in(const std::string& field) {
  if (const auto whole = number_in<std::int64_t>(field))
    return whole;
  const auto number = number_in<double>(field);
  return number && is_class(*number) ? std::optional(static_cast<std::int64_t>(*number))
                                     : std::nullopt;
}

/// Columns of numbers and one column of labels, from one file or the files of a folder.
class CsvTable {
public:
  explicit CsvTable(const DatasetOptions& options) : options_(options) {
    if (options.header != "auto" && options.header != "yes" && options.header != "no")
      throw std::invalid_argument("header: \"" + options.header
                                  + "\" must be \"auto\", \"yes\" or \"no\"");
    info_.format = "csv";
    std::vector<std::filesystem::path> files = {options.path};
    if (std::filesystem::is_directory(options.path))
      files = list_files(options.path, false, [](const std::string& name) {
        return name.ends_with(".csv") || name.ends_with(".tsv");
      });
    if (files.empty())
      throw DataError(options.path.string() + ": has no .csv or .tsv");
    for (const auto& file : files)
      read(file);
  }

  std::unique_ptr<DescribedDataset> take() {
    const auto columns = static_cast<std::int64_t>(columns_.size());
    info_.rows = rows_;
    if (rows_ == 0)
      throw DataError(options_.path.string() + ": has no rows");
    auto features = at::empty({rows_, columns}, at::kFloat);
    std::copy(values_.begin(), values_.end(), features.mutable_data_ptr<float>());
    values_ = {};
    info_.columns.push_back({"features", "float32", {columns}});
    if (is_identified(label_)
        && std::all_of(columns_.begin(), columns_.end(),
                       [this](std::size_t i) { return is_identified(i); })) {
      for (const auto i : columns_)
        info_.features.push_back(names_[i]);
      info_.label = names_[label_];
    }
    auto table = std::make_unique<TensorDataset>(TensorMap{{"features", features}});
    auto label = labels();
    return make_table(std::move(table), std::move(label), std::move(info_), std::move(bad_),
                      options_);
  }

private:
  void read(const std::filesystem::path& path) {
    TextOfFile text(path);
    info_.bytes += text.size();
    std::istream in(&text);
    in.exceptions(std::ios::badbit); // otherwise a failing disk would look like the end of the file
    CsvParser parser(in, path.string(), path.extension() == ".tsv" ? '\t' : ',');
    std::vector<std::string> fields;
    bool first = true;
    while (parser.next(fields)) {
      const auto where = path.string() + ":" + std::to_string(parser.line());
      if (first && fields.front().starts_with("\xef\xbb\xbf")) // the UTF-8 byte order mark
        fields.front().erase(0, 3);
      const bool names = first
                         && (options_.header == "yes"
                             || (options_.header == "auto"
                                 && std::none_of(fields.begin(), fields.end(), is_number)));
      if (width_ == 0)
        begin(fields, names, where);
      else if (names && fields != names_)
        throw DataError(where + ": its header differs from that of the first file");
      if (!names)
        add(fields, where);
      first = false;
    }
  }

  /// The very first record determines the columns.
  void begin(const std::vector<std::string>& fields, bool names, const std::string& where) {
    width_ = fields.size();
    if (names)
      names_ = fields;
    const bool like = names && !options_.features_like.empty();
    const std::string& label = like ? options_.label_like : options_.label;
    const auto& columns = like ? options_.features_like : options_.columns;
    label_ = label.empty() ? default_label() : column(label, where);
    if (columns.empty())
      for (std::size_t i = 0; i < width_; ++i)
        columns_.push_back(i);
    for (const auto& name : columns)
      columns_.push_back(column(name, where));
    std::erase(columns_, label_);
    if (columns_.empty())
      throw DataError(where + ": has no column besides the label");
  }

  std::size_t default_label() const {
    const auto found = std::find(names_.begin(), names_.end(), "label");
    return found != names_.end() ? static_cast<std::size_t>(found - names_.begin()) : width_ - 1;
  }

  std::size_t column(const std::string& name, const std::string& where) const {
    if (const auto found = std::find(names_.begin(), names_.end(), name); found != names_.end())
      return static_cast<std::size_t>(found - names_.begin());
    if (const auto number = number_in<std::size_t>(name); number && *number < width_)
      return *number;
    throw std::invalid_argument(where + ": there is no column \"" + name + "\"; it has "
                                + std::to_string(width_) + " columns"
                                + (names_.empty() ? ", numbered from 0" : ", named or numbered"));
  }

  /// Whether the column's name in the header belongs to no column before it.
  bool is_identified(std::size_t column) const {
    return column < names_.size()
           && std::find(names_.begin(), names_.end(), names_[column]) - names_.begin()
                  == static_cast<std::ptrdiff_t>(column);
  }

  std::string name_of(std::size_t column) const {
    return "column " + std::to_string(column)
           + (column < names_.size() ? " (\"" + names_[column] + "\")" : "");
  }

  /// A bad row keeps its number, so that row numbers match the file.
  void add(const std::vector<std::string>& fields, const std::string& where) {
    std::string problem;
    if (fields.size() != width_)
      problem = "has " + std::to_string(fields.size()) + " fields; the first line has "
                + std::to_string(width_);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto at = columns_[i];
      const auto value = problem.empty() ? number_in<double>(fields[at]) : std::optional(0.0);
      const bool good = value && std::isfinite(static_cast<float>(*value));
      if (!good && problem.empty())
        problem = name_of(at) + ": \"" + fields[at].substr(0, 40) + "\" is not a finite number";
      values_.push_back(good ? static_cast<float>(*value) : 0.F);
    }
    auto label = problem.empty() ? trimmed(fields[label_]) : std::string();
    if (problem.empty() && label.empty())
      problem = name_of(label_) + ": the label is empty";
    if (const auto& names = options_.names; problem.empty() && !names.empty()) {
      const auto found = std::find(names.begin(), names.end(), label);
      if (found == names.end())
        problem = name_of(label_) + ": label \"" + label.substr(0, 40)
                  + "\" is not one of the classes of the data it goes with";
      label = std::to_string(found - names.begin());
    }
    const auto number = whole_in(label).value_or(-1);
    if (problem.empty() && options_.classes > 0 && (number < 0 || number >= options_.classes))
      problem = name_of(label_) + ": label \"" + label.substr(0, 40)
                + "\" is out of range; it must be from 0 to " + std::to_string(options_.classes - 1)
                + " (classes)";
    if (!problem.empty()) {
      bad_.emplace_back(rows_, where + ": " + problem);
      label.clear();
    }
    labels_.push_back(std::move(label));
    ++rows_;
  }

  template <typename Accepts>
  bool all(const Accepts& accepts) const { // over the good rows
    return std::all_of(labels_.begin(), labels_.end(),
                       [&](const auto& text) { return text.empty() || accepts(text); });
  }

  /// Whole numbers are classes, other numbers are values, and words are class names.
  at::Tensor labels() {
    const bool numbers = all(is_number);
    const bool whole = all([](const auto& text) { return whole_in(text).has_value(); });
    std::map<std::string, std::int64_t> classes;
    for (const auto& text : labels_)
      if (!numbers && !text.empty())
        classes[text] = 0;
    for (auto& [name, number] : classes) {
      number = static_cast<std::int64_t>(info_.names.size());
      info_.names.push_back(name);
    }
    if (!options_.names.empty()) // the labels are already numbers
      info_.names = options_.names;
    info_.classes = static_cast<std::int64_t>(info_.names.size());
    auto label = at::empty({rows_}, whole || !numbers ? at::kLong : at::kFloat);
    for (std::int64_t row = 0; row < rows_; ++row) {
      const auto& text = labels_[static_cast<std::size_t>(row)];
      if (whole)
        label.mutable_data_ptr<std::int64_t>()[row] = whole_in(text).value_or(0);
      else if (numbers)
        label.mutable_data_ptr<float>()[row] =
            static_cast<float>(number_in<double>(text).value_or(0));
      else
        label.mutable_data_ptr<std::int64_t>()[row] = text.empty() ? 0 : classes[text];
    }
    return label;
  }

  const DatasetOptions& options_;
  DatasetInfo info_;
  std::size_t width_ = 0; // fields of each line
  std::vector<std::string> names_;
  std::vector<std::size_t> columns_;
  std::size_t label_ = 0;
  std::int64_t rows_ = 0;
  std::vector<float> values_; // [rows, columns]
  std::vector<std::string> labels_;
  BadList bad_;
};

} // namespace

std::unique_ptr<DescribedDataset> open_csv(const DatasetOptions& options) {
  return CsvTable(options).take();
}

} // namespace troupe::learner::data

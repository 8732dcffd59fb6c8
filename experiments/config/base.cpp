#include "experiments/config/base.hpp"

#include <filesystem>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "env/make/make.hpp"
#include "env/nearest_names.hpp"
#include "experiments/config/config.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kMostBases = 8;

/// Clears the fields of `under` that `top` sets, so that merging replaces lists instead of
/// appending to them.
void clear_given(const Message& top, Message& under) {
  std::vector<const FieldDescriptor*> given;
  top.GetReflection()->ListFields(top, &given);
  for (const FieldDescriptor* field : given) {
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      under.GetReflection()->ClearField(&under, field);
    } else if (under.GetReflection()->HasField(under, field)) {
      clear_given(top.GetReflection()->GetMessage(top, field),
                  *under.GetReflection()->MutableMessage(&under, field));
    }
  }
}

std::string file_complaint(const std::string& base, const fs::path& folder, const fs::path& file) {
  std::string text = "base is \"" + base + "\", but there is no file " + file.string();
  const auto near = env::nearest_names(file.stem().string(), config_names({folder}), 1);
  return text
         + (near.empty()
                ? "; its path is relative to the file that names it"
                : "; did you mean \"" + (fs::path(base).parent_path() / near[0]).string() + "\"?");
}

/// Resolves the path of a plug-in relative to `folder`, if `block` has one.
template <class Block>
void settle_plugin(Block& block, const fs::path& folder) {
  if (!block.plugin().empty()) {
    block.set_plugin(fs::absolute(folder / block.plugin()).lexically_normal().string());
  }
}

std::string parse_layers(const std::string& text, const std::string& source, Experiment& experiment,
                         Origins& origins, int depth) {
  if (std::string complaint = parse_text(text, source, experiment, origins); !complaint.empty()) {
    return complaint;
  }
  settle_plugins(experiment, fs::path(source).parent_path());
  const std::string base = experiment.base();
  experiment.clear_base();
  if (base.empty()) {
    return "";
  }
  const std::string at = origin_of(origins, "base", source);
  if (depth == kMostBases) {
    return at + "base is \"" + base + "\", the base of a base, " + std::to_string(kMostBases)
           + " deep; do two files name each other?";
  }
  fs::path file = fs::path(source).parent_path() / base;
  std::error_code ignored;
  if (file.extension() != ".textproto") {
    file += ".textproto";
  }
  if (!fs::is_regular_file(file, ignored)) { // a pipe could block this process
    return at + file_complaint(base, file.parent_path(), file);
  }
  Experiment under;
  Origins of_base;
  std::string complaint =
      parse_layers(read_config_file(file), file.string(), under, of_base, depth + 1);
  if (!complaint.empty()) {
    return complaint;
  }
  under.clear_name();
  clear_given(experiment, under);
  under.MergeFrom(experiment);
  experiment.Swap(&under);
  std::erase_if(of_base, [&](const auto& entry) { // elements of lists that were replaced
    const auto bracket = entry.first.find('[');
    return bracket != std::string::npos && origins.contains(entry.first.substr(0, bracket));
  });
  origins.insert(of_base.begin(), of_base.end());
  return "";
}

} // namespace

void settle_plugins(Experiment& experiment, const fs::path& folder) {
  if (experiment.has_environment()) {
    settle_plugin(*experiment.mutable_environment(), folder);
  }
  if (experiment.has_agent()) {
    settle_plugin(*experiment.mutable_agent(), folder);
  }
}

std::string parse_with_base(const std::string& text, const std::string& source,
                            Experiment& experiment, Origins& origins) {
  return parse_layers(text, source, experiment, origins, 0);
}

} // namespace troupe::experiments

#include "experiments/config/settings.hpp"

#include <google/protobuf/message.h>

#include "experiments/config/keys.hpp"

namespace troupe::experiments {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

Settings::mapped_type setting_of(const Message& message, const FieldDescriptor& field) {
  const auto& view = *message.GetReflection();
  if (field.is_repeated()) {
    return value_text(message, field);
  }
  if (const auto number = number_of(message, field, -1)) {
    return *number;
  }
  switch (field.cpp_type()) {
  case FieldDescriptor::CPPTYPE_BOOL:
    return view.GetBool(message, &field);
  case FieldDescriptor::CPPTYPE_STRING:
    return view.GetString(message, &field);
  default:
    return value_text(message, field);
  }
}

void collect_settings(const Message& message, const std::string& prefix, Settings& out) {
  std::vector<const FieldDescriptor*> fields; // fields that are set
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string name = prefix + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      collect_settings(message.GetReflection()->GetMessage(message, field), name + ".", out);
    } else {
      out.emplace(name, setting_of(message, *field));
    }
  }
}

} // namespace

Settings settings_of(const Message& experiment) {
  Settings out;
  collect_settings(experiment, "", out);
  return out;
}

} // namespace troupe::experiments

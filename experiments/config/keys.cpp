#include "experiments/config/keys.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include "env/make/make.hpp"
#include "env/nearest_names.hpp"
#include "env/text/joined.hpp"
#include "experiments/config/cluster.pb.h"
#include "experiments/config/members.hpp"
#include "experiments/config/sweep.pb.h"

namespace troupe::experiments {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool is_block(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

void collect(const Descriptor& type, const std::string& prefix, std::vector<Key>& out) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string name = prefix + field.name();
    if (is_block(field)) {
      collect(*field.message_type(), name + ".", out);
    } else {
      out.push_back({name, &field});
    }
  }
}

std::string kind_text(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
  case FieldDescriptor::CPPTYPE_BOOL:
    return "true or false";
  case FieldDescriptor::CPPTYPE_DOUBLE:
  case FieldDescriptor::CPPTYPE_FLOAT:
    return "a finite number";
  case FieldDescriptor::CPPTYPE_STRING:
    return "a text in quotes";
  case FieldDescriptor::CPPTYPE_MESSAGE:
    return "a block { … }";
  case FieldDescriptor::CPPTYPE_UINT32:
  case FieldDescriptor::CPPTYPE_UINT64:
    return "a non-negative whole number";
  default:
    return "a whole number";
  }
}

} // namespace

std::vector<Key> all_keys(const Schema& schema) {
  std::vector<Key> out;
  collect(schema, "", out);
  return out;
}

const FieldDescriptor* find_key(const std::string& name, const Schema& schema) {
  const Descriptor* type = &schema;
  const FieldDescriptor* field = nullptr;
  std::size_t begin = 0;
  while (begin <= name.size()) {
    if (type == nullptr) {
      return nullptr; // text follows a value
    }
    const std::size_t dot = std::min(name.find('.', begin), name.size());
    field = type->FindFieldByName(name.substr(begin, dot - begin));
    if (field == nullptr) {
      return nullptr;
    }
    type = is_block(*field) ? field->message_type() : nullptr;
    begin = dot + 1;
  }
  return field;
}

const Rule& rule_of(const FieldDescriptor& field) {
  return field.options().GetExtension(rule);
}

std::string rule_text(const FieldDescriptor& field) {
  const Rule& rules = rule_of(field);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    std::vector<std::string> names;
    for (int i = 0; i < field.enum_type()->value_count(); ++i) {
      names.push_back(field.enum_type()->value(i)->name());
    }
    return "one of " + env::joined(names, " and ");
  }
  if (rules.one_of_size() > 0) {
    std::vector<std::string> names;
    for (const std::string& name : rules.one_of()) {
      names.push_back('"' + name + '"');
    }
    return "one of " + env::joined(names, " and ");
  }
  std::string out = kind_text(field);
  if (rules.has_at_least() && rules.has_at_most()) {
    out += " from " + number_text(rules.at_least()) + " to " + number_text(rules.at_most());
  } else {
    std::vector<std::string> parts;
    if (rules.has_at_least()) {
      parts.push_back("at least " + number_text(rules.at_least()));
    }
    if (rules.has_above()) {
      parts.push_back("above " + number_text(rules.above()));
    }
    if (rules.has_below()) {
      parts.push_back("below " + number_text(rules.below()));
    }
    if (rules.has_at_most()) {
      parts.push_back("at most " + number_text(rules.at_most()));
    }
    out += (parts.empty() ? "" : ", ") + env::joined(parts, " and ");
  }
  return rules.has_unit() ? out + ", in " + rules.unit() : out;
}

std::string default_text(const FieldDescriptor& field) {
  if (const auto member = member_default(field)) {
    return *member;
  }
  if (field.is_repeated()) {
    return rule_of(field).when_empty();
  }
  switch (field.cpp_type()) {
  case FieldDescriptor::CPPTYPE_BOOL:
    return field.default_value_bool() ? "true" : "false";
  case FieldDescriptor::CPPTYPE_INT32:
    return std::to_string(field.default_value_int32());
  case FieldDescriptor::CPPTYPE_INT64:
    return std::to_string(field.default_value_int64());
  case FieldDescriptor::CPPTYPE_UINT64:
    return std::to_string(field.default_value_uint64());
  case FieldDescriptor::CPPTYPE_DOUBLE:
    return number_text(field.default_value_double());
  case FieldDescriptor::CPPTYPE_ENUM:
    return field.default_value_enum()->name();
  case FieldDescriptor::CPPTYPE_STRING:
    return field.default_value_string();
  default:
    return "";
  }
}

std::string value_text(const Message& message, const FieldDescriptor& field, int index) {
  std::string out;
  google::protobuf::TextFormat::PrintFieldValueToString(message, &field,
                                                        field.is_repeated() ? index : -1, &out);
  return out;
}

std::string value_text(const Message& message, const FieldDescriptor& field) {
  if (!field.is_repeated()) {
    return value_text(message, field, -1);
  }
  std::string text;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    text += std::string(i == 0 ? "" : ",") + value_text(message, field, i);
  }
  return text;
}

std::optional<double> number_of(const Message& message, const FieldDescriptor& field, int index) {
  const auto& view = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT32:
    return many ? view.GetRepeatedInt32(message, &field, index) : view.GetInt32(message, &field);
  case FieldDescriptor::CPPTYPE_INT64:
    return static_cast<double>(many ? view.GetRepeatedInt64(message, &field, index)
                                    : view.GetInt64(message, &field));
  case FieldDescriptor::CPPTYPE_UINT64:
    return static_cast<double>(many ? view.GetRepeatedUInt64(message, &field, index)
                                    : view.GetUInt64(message, &field));
  case FieldDescriptor::CPPTYPE_DOUBLE:
    return many ? view.GetRepeatedDouble(message, &field, index) : view.GetDouble(message, &field);
  default:
    return std::nullopt;
  }
}

std::optional<std::string> violation(const Message& message, const FieldDescriptor& field,
                                     int index) {
  const Rule& rules = rule_of(field);
  bool good = true;
  if (const auto number = number_of(message, field, index)) {
    good = std::isfinite(*number) && !(rules.has_at_least() && *number < rules.at_least())
           && !(rules.has_at_most() && *number > rules.at_most())
           && !(rules.has_above() && *number <= rules.above())
           && !(rules.has_below() && *number >= rules.below());
  } else if (rules.one_of_size() > 0) {
    std::string scratch;
    const auto& view = *message.GetReflection();
    const std::string& value =
        field.is_repeated() ? view.GetRepeatedStringReference(message, &field, index, &scratch)
                            : view.GetStringReference(message, &field, &scratch);
    good = std::find(rules.one_of().begin(), rules.one_of().end(), value) != rules.one_of().end();
    if (!good) {
      const auto near =
          env::nearest_names(value, {rules.one_of().begin(), rules.one_of().end()}, 1);
      return "is " + value_text(message, field, index) + "; it must be " + rule_text(field)
             + (near.empty() ? "" : "; did you mean \"" + near.front() + "\"?");
    }
  }
  if (good) {
    return std::nullopt;
  }
  return "is " + value_text(message, field, index) + "; it must be " + rule_text(field)
         + (rules.has_help() ? " (" + rules.help() + ")" : "");
}

std::string where_keys_are(const Schema& schema) {
  const char* what = &schema == Experiment::descriptor() ? "keys"
                     : &schema == Sweep::descriptor()    ? "sweep-keys"
                     : &schema == Cluster::descriptor()  ? "cluster-keys"
                                                         : "table-keys";
  return std::string(" (`troupe list ") + what + "` names them all)";
}

std::string did_you_mean(const std::string& block, const std::string& name, const Schema& schema) {
  std::vector<std::string> found;
  std::vector<std::string> siblings;
  std::vector<std::string> dotted;
  const std::string prefix = block.empty() ? "" : block + ".";
  const std::string leaf =
      name.substr(name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1);
  for (const Key& key : all_keys(schema)) {
    dotted.push_back(key.name);
    if (key.field->name() == leaf) {
      found.push_back(key.name); // the right name, but in the wrong block
    }
  }
  const FieldDescriptor* parent = block.empty() ? nullptr : find_key(block, schema);
  const Descriptor* type = parent == nullptr ? &schema : parent->message_type();
  for (int i = 0; type != nullptr && i < type->field_count(); ++i) {
    siblings.push_back(type->field(i)->name());
  }
  for (const std::string& near : env::nearest_names(name, siblings, 2)) {
    found.push_back(prefix + near);
  }
  for (const std::string& near : env::nearest_names(prefix + name, dotted, 2)) {
    found.push_back(near);
  }
  std::vector<std::string> unique;
  for (const std::string& candidate : found) {
    if (unique.size() < 3 && std::find(unique.begin(), unique.end(), candidate) == unique.end()) {
      unique.push_back(candidate);
    }
  }
  return unique.empty() ? "" : "; did you mean " + env::joined(unique, " or ") + "?";
}

} // namespace troupe::experiments

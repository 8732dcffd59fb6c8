#include "experiments/config/parse.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include "env/make/make.hpp"
#include "env/nearest_names.hpp"
#include "experiments/config/keys.hpp"

namespace troupe::experiments {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;
namespace io = google::protobuf::io;

using Position = std::pair<int, int>; // line and column, both from 0

class FirstError : public io::ErrorCollector {
public:
  void AddError(int line, io::ColumnNumber column, const std::string& text) override {
    if (message.empty()) {
      position = {line, column};
      message = text;
    }
  }
  Position position;
  std::string message;
};

/// The state of the text at a position: open blocks, last key and last value.
struct SourcePlace {
  std::vector<std::string> blocks;
  std::string key; // the last key before the position
  Position key_at;
  std::string value;
  Position value_at{-1, -1};

  std::string block() const {
    std::string out;
    for (const std::string& name : blocks)
      out += (out.empty() ? "" : ".") + name;
    return out;
  }
  std::string dotted() const { return blocks.empty() ? key : block() + "." + key; }
};

/// Finds the key at the parser's position, because the parser's messages seldom name it.
SourcePlace find_place(const std::string& text, const Position& until) {
  enum class Expect { key, colon, value, list } expect = Expect::key;
  io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  FirstError ignored;
  io::Tokenizer tokens(&stream, &ignored);
  tokens.set_comment_style(io::Tokenizer::SH_COMMENT_STYLE);
  SourcePlace place;
  while (tokens.Next()) {
    const auto& token = tokens.current();
    const Position at{token.line, token.column};
    const bool takes_value = expect == Expect::value || expect == Expect::list;
    if (place.value != "-" && (at > until || (at == until && !takes_value)))
      break;
    const std::string& word = token.text;
    if ((word == "{" || word == "<") && expect != Expect::key) {
      place.blocks.push_back(place.key);
      expect = Expect::key;
    } else if (word == "}" || word == ">") {
      if (!place.blocks.empty())
        place.blocks.pop_back();
      expect = Expect::key;
    } else if (expect == Expect::key && token.type == io::Tokenizer::TYPE_IDENTIFIER) {
      place.key = word;
      place.key_at = at;
      place.value.clear();
      place.value_at = {-1, -1};
      expect = Expect::colon;
    } else if (expect == Expect::colon && word == ":") {
      expect = Expect::value;
    } else if (takes_value && word == "[") {
      expect = Expect::list;
    } else if (expect == Expect::list && (word == "," || word == "]")) {
      expect = word == "]" ? Expect::key : Expect::list;
    } else if (takes_value) {
      const bool sign = place.value == "-";
      place.value = (sign ? "-" : "") + word;
      place.value_at = sign ? place.value_at : at;
      expect = word == "-" || expect == Expect::list ? expect : Expect::key;
    }
  }
  return place;
}

std::string at_text(const std::string& source, const Position& at) {
  return source + ":" + std::to_string(at.first + 1) + ":" + std::to_string(at.second + 1);
}

std::string quoted_part(const std::string& message, const std::string& before) {
  const std::size_t begin = message.find(before + "\"");
  if (begin == std::string::npos)
    return "";
  const std::size_t first = begin + before.size() + 1;
  const std::size_t last = message.find('"', first);
  return last == std::string::npos ? "" : message.substr(first, last - first);
}

std::string bad_value_text(const FieldDescriptor& field, const std::string& value) {
  std::string out =
      "is " + (value.empty() ? "nothing" : value) + "; it must be " + rule_text(field);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    std::vector<std::string> names;
    for (int i = 0; i < field.enum_type()->value_count(); ++i)
      names.push_back(field.enum_type()->value(i)->name());
    std::string upper = value;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (upper == "GLOO") // learner.backend in run files of earlier versions
      return out + "; TCP has replaced it";
    const auto near = env::nearest_names(upper, names, 1);
    return out + (near.empty() ? "" : "; did you mean " + near.front() + "?");
  }
  const std::string& help = rule_of(field).help();
  return help.empty() ? out : out + " (" + help + ")";
}

std::string complaint(const std::string& text, const std::string& source, const FirstError& error,
                      const Schema& schema) {
  const SourcePlace place = find_place(text, error.position);
  const std::string unknown = quoted_part(error.message, "has no field named ");
  if (!unknown.empty()) {
    const bool outside = !place.block().empty() && schema.FindFieldByName(unknown) != nullptr;
    return at_text(source, place.key_at) + ": " + place.dotted() + " is not a key"
           + (outside ? "; " + unknown + " stands outside " + place.block()
                            + ": is a } missing before it?"
                      : did_you_mean(place.block(), unknown, schema) + where_keys_are(schema));
  }
  if (error.message.find("specified multiple times") != std::string::npos)
    return at_text(source, place.key_at) + ": " + place.dotted() + " is given twice; give it once";
  if (!place.blocks.empty() && error.message.ends_with("got: ")) {
    return at_text(source, error.position) + ": the text ends inside the block " + place.block()
           + "; a } is missing";
  }
  if (place.blocks.empty() && error.message.ends_with("got: }"))
    return at_text(source, error.position) + ": this } closes no block; remove it, or add the {";
  const FieldDescriptor* field = place.key.empty() ? nullptr : find_key(place.dotted(), schema);
  const bool syntax = error.message.starts_with("Expected identifier")
                      || error.message.starts_with("Expected \"")
                      || error.message.starts_with("Already saw");
  if (field != nullptr && !syntax && field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return at_text(source, place.value_at.first < 0 ? error.position : place.value_at) + ": "
           + place.dotted() + " " + bad_value_text(*field, place.value);
  }
  std::string around = place.key.empty() ? "" : " (near " + place.dotted() + ")";
  return at_text(source, error.position) + ": " + error.message + around
         + "; lines read `key: value` or `block { … }`";
}

/// One of the blocks of a field that may be given once or several times.
const Message& block_of(const Message& message, const FieldDescriptor& field, int index) {
  return field.is_repeated() ? message.GetReflection()->GetRepeatedMessage(message, &field, index)
                             : message.GetReflection()->GetMessage(message, &field);
}

/// The name of a block in messages: "replay", "table[1]".
std::string block_name(const FieldDescriptor& field, int index) {
  return field.is_repeated() ? element_name(field.name(), index) : field.name();
}

void note_origins(const Message& message, const TextFormat::ParseInfoTree& tree,
                  const std::string& prefix, const std::string& source, Origins& origins) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool many = field->is_repeated();
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      const auto at = tree.GetLocation(field, many ? 0 : -1);
      if (at.line >= 0)
        origins[prefix + field->name()] = at_text(source, {at.line, at.column});
      const int size = many ? message.GetReflection()->FieldSize(message, field) : 0;
      if (size > 0 && tree.GetLocation(field, size - 1).line >= 0) { // false for [a, b]
        for (int i = 0; i < size; ++i) {
          const auto element = tree.GetLocation(field, i);
          origins[prefix + block_name(*field, i)] = at_text(source, {element.line, element.column});
        }
      }
      continue;
    }
    for (int i = 0; i < (many ? message.GetReflection()->FieldSize(message, field) : 1); ++i) {
      const auto place = tree.GetLocation(field, many ? i : -1);
      origins[prefix + block_name(*field, i)] = at_text(source, {place.line, place.column});
      const auto* nested = tree.GetTreeForNested(field, many ? i : -1);
      if (nested != nullptr) {
        note_origins(block_of(message, *field, i), *nested, prefix + block_name(*field, i) + ".",
                     source, origins);
      }
    }
  }
}

/// The first repeated block in the path of a key; "" if there is none.
std::string several_times(const Schema& schema, const std::string& key) {
  for (std::size_t dot = key.find('.');; dot = key.find('.', dot + 1)) {
    const FieldDescriptor* field = find_key(key.substr(0, dot), schema);
    if (field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      return key.substr(0, dot);
    if (dot == std::string::npos)
      return "";
  }
}

/// Finds or creates the message that contains `key`'s field.
Message* holder_of(Message& root, const std::string& key) {
  Message* message = &root;
  std::size_t begin = 0;
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', begin)) {
    const auto* field = message->GetDescriptor()->FindFieldByName(key.substr(begin, dot - begin));
    message = message->GetReflection()->MutableMessage(message, field);
    begin = dot + 1;
  }
  return message;
}

/// Sets `field`, or appends to it if it is a list. Returns false if the text is not a value of its
/// type.
bool set_value(const std::string& value, const FieldDescriptor& field, Message& message) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
    const std::string plain = quoted ? value.substr(1, value.size() - 2) : value;
    if (field.is_repeated()) {
      message.GetReflection()->AddString(&message, &field, plain);
    } else {
      message.GetReflection()->SetString(&message, &field, plain);
    }
    return true;
  }
  FirstError error;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  return parser.ParseFieldValueFromString(value, &field, &message) && error.message.empty();
}

/// The parts of a list, `a,b` or as in a file `[a, b]`: splits at commas outside double quotes.
std::vector<std::string> list_parts(std::string text) {
  const bool brackets = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (brackets)
    text = text.substr(1, text.size() - 2);
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : text) {
    quoted = quoted != (c == '"');
    if (c == ',' && !quoted)
      out.emplace_back();
    else
      out.back() += c;
  }
  if (!brackets)
    return out;
  for (std::string& part : out) {
    part.erase(0, part.find_first_not_of(" \t\n"));
    part.erase(part.find_last_not_of(" \t\n") + 1);
  }
  if (out == std::vector<std::string>{""})
    out.clear();
  return out;
}

} // namespace

std::string element_name(const std::string& key, int index) {
  return key + '[' + std::to_string(index) + ']';
}

std::string parse_text(const std::string& text, const std::string& source, Message& message,
                       Origins& origins) {
  FirstError error;
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&tree);
  if (!parser.ParseFromString(text, &message) || !error.message.empty())
    return complaint(text, source, error, *message.GetDescriptor());
  note_origins(message, tree, "", source, origins);
  return "";
}

std::string apply_override(const std::string& assignment, Message& root, Origins& origins) {
  const Schema& schema = *root.GetDescriptor();
  const std::string origin = "--set " + assignment;
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    return origin + ": has no `=`; write --set key=value";
  const std::string key = assignment.substr(0, equals);
  const std::string value = assignment.substr(equals + 1);
  const FieldDescriptor* field = find_key(key, schema);
  if (field == nullptr) {
    const std::size_t dot = key.rfind('.');
    const std::string block = dot == std::string::npos ? "" : key.substr(0, dot);
    const auto* parent = find_key(block, schema);
    const bool known = parent != nullptr && parent->message_type() != nullptr;
    return origin + ": " + key + " is not a key"
           + did_you_mean(known ? block : "", known ? key.substr(dot + 1) : key, schema)
           + where_keys_are(schema);
  }
  if (const std::string block = several_times(schema, key); !block.empty())
    return origin + ": " + block + " may be given several times; write it in a file";
  Message* message = holder_of(root, key);
  message->GetReflection()->ClearField(message, field);
  std::erase_if(origins, [&](const auto& entry) {
    return entry.first.starts_with(key + ".") || entry.first.starts_with(key + "[");
  });
  origins[key] = origin;
  if (value.empty())
    return "";
  for (const std::string& part :
       field->is_repeated() ? list_parts(value) : std::vector<std::string>{value}) {
    if (!set_value(part, *field, *message))
      return origin + ": " + key + " " + bad_value_text(*field, part);
  }
  return "";
}

std::string origin_of(const Origins& origins, const std::string& key, const std::string& source) {
  for (std::string name = key; !name.empty();) {
    const auto found = origins.find(name);
    if (found != origins.end())
      return found->second + ": ";
    const std::size_t end = name.find_last_of(".[");
    name.resize(end == std::string::npos ? 0 : end);
  }
  return source.empty() ? "" : source + ": ";
}

void fill_defaults(Message& message) {
  const auto* type = message.GetDescriptor();
  const auto& view = *message.GetReflection();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      for (int k = 0; k < view.FieldSize(message, field); ++k)
        fill_defaults(*view.MutableRepeatedMessage(&message, field, k));
    } else if (field->is_repeated()) {
      if (view.FieldSize(message, field) == 0) {
        std::stringstream values(default_text(*field));
        for (std::string value; std::getline(values, value, ',');)
          google::protobuf::TextFormat::ParseFieldValueFromString(value, field, &message);
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (view.HasField(message, field) || !rule_of(*field).optional_block())
        fill_defaults(*view.MutableMessage(&message, field));
    } else if (!view.HasField(message, field)) {
      std::string text = default_text(*field);
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        view.SetString(&message, field, text);
      } else {
        google::protobuf::TextFormat::ParseFieldValueFromString(text, field, &message);
      }
    }
  }
}

void check_rules(const Message& message, const std::string& prefix, const Origins& origins,
                 const std::string& source, std::vector<std::string>& complaints) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string key = prefix + field->name();
    const int count = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      for (int i = 0; i < count; ++i) {
        check_rules(block_of(message, *field, i), prefix + block_name(*field, i) + ".", origins,
                    source, complaints);
      }
      continue;
    }
    for (int i = 0; i < count; ++i) {
      if (const auto text = violation(message, *field, i)) {
        complaints.push_back(origin_of(origins, key, source) + key + " " + *text);
        break;
      }
    }
  }
}

} // namespace troupe::experiments

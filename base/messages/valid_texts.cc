#include "base/messages/valid_texts.h"

#include <string>
#include <string_view>

#include "base/messages/fields_within.h"
#include "base/names/utf8.h"
#include "google/protobuf/descriptor.h"

namespace pawl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool IsText(const FieldDescriptor& field) { return field.type() == FieldDescriptor::TYPE_STRING; }

bool IsValid(std::string_view text) {
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

void MakeTextsValid(Message* message) {
  static thread_local FieldsWithin with_texts(IsText);
  const Reflection& reflection = *message->GetReflection();
  std::string unused;
  for (const FieldDescriptor* field : with_texts.Of(*message->GetDescriptor())) {
    if (field->is_map()) continue;
    if (!field->is_repeated()) {
      if (!IsText(*field)) {
        if (reflection.HasField(*message, field)) MakeTextsValid(reflection.MutableMessage(message, field));
      } else if (const std::string& text = reflection.GetStringReference(*message, field, &unused); !IsValid(text)) {
        reflection.SetString(message, field, ValidUtf8(text));
      }
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      if (!IsText(*field)) {
        MakeTextsValid(reflection.MutableRepeatedMessage(message, field, i));
        continue;
      }
      const std::string& text = reflection.GetRepeatedStringReference(*message, field, i, &unused);
      if (!IsValid(text)) reflection.SetRepeatedString(message, field, i, ValidUtf8(text));
    }
  }
}

}  // namespace pawl

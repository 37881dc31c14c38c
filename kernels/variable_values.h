// Values of variables as users write and read them: whole numbers, words, or true and false. In messages a word is its
// position in the variable's list, and true is 1.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// The variable of this name; null: the bundle has none.
const v1::Variable* FindVariable(const v1::Bundle& bundle, const std::string& name);

// "64", "half", "true": also what stands for {} in an option and for the variable in an entry.
std::string ValueText(const v1::Variable& variable, int32_t value);
// The same of a variable by its name; one that the bundle does not have: the number.
std::string ValueText(const v1::Bundle& bundle, const std::string& name, int32_t value);
// All values of a variable, in their order: "16, 32, 64".
std::string ValuesText(const v1::Variable& variable);

// The value that a user wrote; an error lists those that there are.
absl::StatusOr<int32_t> ReadValue(const v1::Variable& variable, const std::string& text);

// "ACC=half KV_SPLITS=4", sorted by name: for users. VariantText(variant) is for comparing.
std::string VariantText(const v1::Bundle& bundle, const v1::Variant& variant);

// The words of a change's values and of a variant's, where they are words or flags: for those who print them without
// the bundle.
void NameWords(const v1::Bundle& bundle, v1::Change* change);
google::protobuf::Map<std::string, std::string> WordsOf(const v1::Bundle& bundle,
                                                        const google::protobuf::Map<std::string, int32_t>& values);
// Sets the value of a change that a user gave as a word. An error lists the values that there are; a variable that
// there is not is left to others.
absl::Status ReadWord(const google::protobuf::RepeatedPtrField<v1::Variable>& variables, v1::Change* change);
// The values of a change as text.
std::string FromText(const v1::Change& change);
std::string ToText(const v1::Change& change);

// What the source sees as the macro: a flag is 0 or 1.
std::string MacroText(const v1::Variable& variable, int32_t value);

// Whether a word can be a value: it begins with a letter, a digit or _, has no blanks and quotes, and is no number.
bool IsValueWord(const std::string& word);

// The expression with each word in quotes replaced by its position: in `ACC == "half"` the word is one of ACC's. An
// error names a word that the variable does not have, and one that is compared with no variable.
absl::StatusOr<std::string> WithoutWords(const v1::Bundle& bundle, const std::string& expression);

}  // namespace pawl

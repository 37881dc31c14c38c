#include "kernels/contract.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace pawl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kMaxShown = 60;  // characters of a value

// What kernel.toml calls the fields of a bundle that belong to the contract.
constexpr std::pair<std::string_view, std::string_view> kTables[] = {{"sizes", "[[size]]"},
                                                                     {"tensors", "[[tensor]]"},
                                                                     {"scalars", "[[scalar]]"},
                                                                     {"hidden", "[hidden]"},
                                                                     {"work_flops", "[work] flops"},
                                                                     {"work_bytes", "[work] bytes"},
                                                                     {"reference", "[reference]"},
                                                                     {"tolerance", "[tolerance]"},
                                                                     {"baseline_command", "[baseline] command"},
                                                                     {"nondeterministic", "deterministic = false"},
                                                                     {"work_on_tensor_cores", "[work] tensor_cores"},
                                                                     {"baseline_files", "file of the baseline"},
                                                                     {"structs", "[[struct]]"},
                                                                     {"setup", "[setup]"},
                                                                     {"data_files", "data file"},
                                                                     {"problem_files", "data"}};

template <typename List>
void SortByName(List* list) {
  std::sort(list->begin(), list->end(), [](const auto& a, const auto& b) { return a.name() < b.name(); });
}

template <typename List, typename Unwanted>
void RemoveWhere(List* list, const Unwanted& unwanted) {
  list->erase(std::remove_if(list->begin(), list->end(), unwanted), list->end());
}

// The bundle without its implementation, and without its goal: what both compute decides whether they can be compared,
// not when a campaign would stop. Tensors and scalars have no order; sizes do.
v1::Bundle ContractOf(const v1::Bundle& bundle) {
  v1::Bundle contract = bundle;
  contract.clear_name();
  contract.clear_summary();
  contract.clear_source();
  contract.clear_compiler();
  contract.clear_options();
  contract.clear_variables();
  contract.clear_constraints();
  contract.clear_launches();
  contract.clear_symbols();
  contract.clear_goal();
  contract.clear_files();
  contract.clear_include();
  contract.clear_skip_host_code();
  RemoveWhere(contract.mutable_tensors(),
              [](const v1::Tensor& tensor) { return tensor.role() == v1::TENSOR_ROLE_SCRATCH; });
  // Structs are the implementation's, except for those that the reference and the setup take.
  std::set<std::string> taken;
  for (const auto* launches : {&bundle.reference().launches(), &bundle.setup().launches()}) {
    for (const v1::Launch& launch : *launches) taken.insert(launch.arguments().begin(), launch.arguments().end());
  }
  RemoveWhere(contract.mutable_structs(),
              [&](const v1::StructArgument& argument) { return !taken.contains(argument.name()); });
  SortByName(contract.mutable_tensors());
  SortByName(contract.mutable_scalars());
  SortByName(contract.mutable_structs());
  return contract;
}

// Every value of a message that is set, in the order of its fields, with the place where it stands.
class ContractValues {
 public:
  struct Value {
    std::string where, text;
  };

  explicit ContractValues(const v1::Bundle& contract) { Add(contract, ""); }

  const std::vector<Value>& list() const { return list_; }
  bool Has(const std::string& where) const { return places_.contains(where); }

 private:
  void Put(const std::string& where, std::string text) {
    list_.push_back({where, std::move(text)});
    places_.insert(where);
  }

  void Add(const Message& message, const std::string& where) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      std::string word(field->name());
      for (const auto& [name, table] : kTables) {
        if (where.empty() && word == name) word = std::string(table);
      }
      const std::string at = where.empty() ? word : absl::StrCat(where, " ", word);
      if (field->is_map()) {
        AddMap(message, *field, where.empty() ? at : where);
      } else if (field->is_repeated()) {
        for (int i = 0; i < reflection.FieldSize(message, field); ++i) AddEntry(message, *field, i, at);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        Add(reflection.GetMessage(message, field), at);
      } else {
        Put(at, TextOf(message, *field, -1));
      }
    }
  }

  void AddEntry(const Message& message, const FieldDescriptor& field, int index, const std::string& at) {
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      Put(absl::StrCat(at, " ", index + 1), TextOf(message, field, index));
      return;
    }
    const Message& entry = message.GetReflection()->GetRepeatedMessage(message, &field, index);
    const std::string own = NameOf(entry);
    const std::string where = absl::StrCat(at, " ", own.empty() ? absl::StrCat(index + 1) : own);
    Put(where, "");  // so that a missing table is missed, and not the first of its keys
    Add(entry, where);
  }

  void AddMap(const Message& message, const FieldDescriptor& field, const std::string& at) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    std::map<std::string, const Message*> sorted;
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
      sorted[entry.GetReflection()->GetString(entry, entry.GetDescriptor()->map_key())] = &entry;
    }
    for (const auto& [key, entry] : sorted) {
      const FieldDescriptor& value = *entry->GetDescriptor()->map_value();
      const std::string where = absl::StrCat(at, " ", key);
      if (value.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        Add(entry->GetReflection()->GetMessage(*entry, &value), where);
      } else {
        Put(where, TextOf(*entry, value, -1));
      }
    }
  }

  static std::string NameOf(const Message& message) {
    for (const char* name : {"name", "path"}) {
      const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
      if (field != nullptr) return message.GetReflection()->GetString(message, field);
    }
    return "";
  }

  // `index`: of a repeated field; -1: it is none.
  static std::string TextOf(const Message& message, const FieldDescriptor& field, int index) {
    const google::protobuf::Reflection& r = *message.GetReflection();
    const bool one = index < 0;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return one ? r.GetString(message, &field) : r.GetRepeatedString(message, &field, index);
      case FieldDescriptor::CPPTYPE_ENUM:
        return std::string((one ? r.GetEnum(message, &field) : r.GetRepeatedEnum(message, &field, index))->name());
      case FieldDescriptor::CPPTYPE_INT32:
        return absl::StrCat(one ? r.GetInt32(message, &field) : r.GetRepeatedInt32(message, &field, index));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return absl::StrCat(one ? r.GetDouble(message, &field) : r.GetRepeatedDouble(message, &field, index));
      case FieldDescriptor::CPPTYPE_BOOL:
        return (one ? r.GetBool(message, &field) : r.GetRepeatedBool(message, &field, index)) ? "true" : "false";
      default:  // a bundle has no other kinds of fields
        return message.ShortDebugString();
    }
  }

  std::vector<Value> list_;
  std::set<std::string> places_;
};

// Files are named by the line from which they differ.
std::string ValueDifference(const ContractValues::Value& a, const ContractValues::Value& b, const std::string& first,
                            const std::string& second) {
  const bool shown = std::max(a.text.size(), b.text.size()) <= kMaxShown &&
                     std::min(a.text.find('\n'), b.text.find('\n')) == std::string::npos;
  if (shown) return absl::StrCat(a.where, " is ", a.text, " in ", first, ", ", b.text, " in ", second);
  const auto at = std::mismatch(a.text.begin(), a.text.end(), b.text.begin(), b.text.end()).first;
  return absl::StrCat(a.where, " differs from line ", 1 + std::count(a.text.begin(), at, '\n'), " on");
}

}  // namespace

std::string ContractDifference(const v1::Bundle& a, const v1::Bundle& b, const std::string& first,
                               const std::string& second) {
  const ContractValues of_a(ContractOf(a)), of_b(ContractOf(b));
  const auto& mine = of_a.list();
  const auto& theirs = of_b.list();
  for (size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    const bool same_place = i < mine.size() && i < theirs.size() && mine[i].where == theirs[i].where;
    if (same_place && mine[i].text == theirs[i].text) continue;
    if (same_place) return ValueDifference(mine[i], theirs[i], first, second);
    if (i < mine.size() && !of_b.Has(mine[i].where)) return absl::StrCat("only ", first, " has ", mine[i].where);
    if (i < theirs.size() && !of_a.Has(theirs[i].where)) return absl::StrCat("only ", second, " has ", theirs[i].where);
    const ContractValues::Value& moved = i < mine.size() ? mine[i] : theirs[i];
    return absl::StrCat(moved.where, " is at another position in ", second);
  }
  return "";
}

}  // namespace pawl

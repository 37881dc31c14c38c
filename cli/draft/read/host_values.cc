// Resolved, LikelyValue, AddressOf and HostTensor, declared in host_launches.h: what the host's variables stand for.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/host_launches.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

constexpr int kMaxSteps = 24;      // from a variable to the variable that it was made of
constexpr int kMaxResolved = 128;  // parts of an expression: each variable may double the one before

bool IsZero(const CppExpression& e) { return e.kind == Kind::kNumber && e.text == "0"; }

CppExpression ResolvedWithin(const CppExpression& e, const HostValues& values, const std::map<std::string, bool>& kept,
                             int steps, int& left) {
  if (steps > kMaxSteps || --left < 0) return e;
  if (e.kind == Kind::kName) {
    if (kept.contains(e.text)) return e;
    const auto found = values.find(e.text);
    if (found == values.end() || found->second.parts.size() != 1 || found->second.is_dim3) return e;
    const CppExpression& value = found->second.parts[0];
    // What a tensor or the device answers has no better name than the variable's.
    if (value.kind == Kind::kOther || value.kind == Kind::kString || value.kind == Kind::kList) return e;
    if (value.IsName(e.text)) return e;
    CppExpression inner = ResolvedWithin(value, values, kept, steps + 1, left);
    const bool opaque = inner.kind == Kind::kCall || inner.kind == Kind::kSubscript || inner.kind == Kind::kMember;
    if (opaque && !absl::StrContains(CppText(inner), "multiProcessorCount")) {
      static const auto& arithmetic =
          *new std::set<std::string>{"std::min", "std::max", "min", "max", "sizeof", "ceil", "std::ceil", "ceilf"};
      const bool known =
          inner.kind == Kind::kCall && inner.parts[0].kind == Kind::kName &&
          (arithmetic.contains(inner.parts[0].text) || absl::StrContains(inner.parts[0].text, "div") ||
           absl::StrContains(inner.parts[0].text, "Div") || absl::StrContains(inner.parts[0].text, "DIV"));
      if (!known) return e;
    }
    return inner;
  }
  if (e.kind == Kind::kMember && kept.contains(CppText(e))) return e;
  if (e.kind == Kind::kMember && e.parts[0].kind == Kind::kName && e.text.size() == 1) {
    static const std::string kAxes = "xyz";
    const auto found = values.find(e.parts[0].text);
    const size_t axis = kAxes.find(e.text);
    if (found != values.end() && found->second.is_dim3 && axis != std::string::npos) {
      if (axis < found->second.parts.size())
        return ResolvedWithin(found->second.parts[axis], values, kept, steps + 1, left);
      CppExpression one;
      one.kind = Kind::kNumber;
      one.text = "1";
      return one;
    }
  }
  if (e.kind == Kind::kSubscript && e.parts[0].kind == Kind::kName) {
    const auto element = values.find(CppText(e));
    if (element != values.end() && element->second.parts.size() == 1) {
      return ResolvedWithin(element->second.parts[0], values, kept, steps + 1, left);
    }
    const auto array = values.find(e.parts[0].text);
    const std::optional<int64_t> index = ConstantValue(e.parts[1], {});
    if (array != values.end() && index && *index >= 0 && static_cast<size_t>(*index) < array->second.parts.size() &&
        array->second.parts.size() > 1) {
      return ResolvedWithin(array->second.parts[static_cast<size_t>(*index)], values, kept, steps + 1, left);
    }
  }
  if (e.kind == Kind::kMember) {
    const auto field = values.find(CppText(e));
    return field != values.end() && field->second.parts.size() == 1
               ? ResolvedWithin(field->second.parts[0], values, kept, steps + 1, left)
               : e;
  }
  CppExpression result = e;
  const size_t from = e.kind == Kind::kCall ? 1 : 0;
  for (size_t i = from; i < result.parts.size(); ++i)
    result.parts[i] = ResolvedWithin(e.parts[i], values, kept, steps + 1, left);
  return result;
}

}  // namespace

CppExpression Resolved(const CppExpression& expression, const HostValues& values,
                       const std::map<std::string, bool>& kept) {
  int left = kMaxResolved;
  return ResolvedWithin(expression, values, kept, 0, left);
}

std::optional<int64_t> LikelyValue(const CppExpression& e, const std::map<std::string, int64_t>& names) {
  if (const std::optional<int64_t> value = ConstantValue(e, names)) return value;
  if (e.kind == Kind::kCast) return LikelyValue(e.parts[0], names);
  if (e.kind != Kind::kConditional) return std::nullopt;
  const std::optional<int64_t> otherwise = LikelyValue(e.parts[2], names);
  return otherwise ? otherwise : LikelyValue(e.parts[1], names);
}

namespace {

// Whether an operand of p + n is the pointer.
bool IsPointer(const CppExpression& e, const HostValues& values, int steps = 0) {
  if (steps > kMaxSteps) return false;
  if (e.kind == Kind::kName) {
    const auto found = values.find(e.text);
    return found != values.end() && (found->second.pointer || (found->second.parts.size() == 1 &&
                                                               IsPointer(found->second.parts[0], values, steps + 1)));
  }
  if (e.kind == Kind::kCast && absl::StrContains(e.text, "*")) return true;
  if (e.kind == Kind::kPrefix && e.text == "&") return true;
  if (e.kind == Kind::kCall) {
    const std::string& name = e.parts[0].text;
    return absl::StrContains(name, "data_ptr") || absl::EndsWith(name, "data") ||
           absl::StrContains(name, "pointer_cast");
  }
  if (e.kind != Kind::kCast && (e.kind != Kind::kBinary || (e.text != "+" && e.text != "-"))) return false;
  return std::any_of(e.parts.begin(), e.parts.end(),
                     [&](const CppExpression& part) { return IsPointer(part, values, steps + 1); });
}

}  // namespace

HostAddress AddressOf(const CppExpression& argument, const HostValues& values) {
  HostAddress address;
  CppExpression e = argument;
  bool element = false;  // of an array: which memory it is has no name
  const auto ends = [&](const std::string& tensor, const std::string& root) {
    if (address.tensor.empty() && !element) address.tensor = tensor;
    address.root = root;
    return address;
  };
  for (int step = 0; step < kMaxSteps; ++step) {
    if (e.kind == Kind::kPrefix && e.text == "&" && e.parts[0].kind == Kind::kSubscript) {
      const CppExpression& at = e.parts[0];
      if (!IsZero(at.parts[1])) absl::StrAppend(&address.offset, " + ", CppText(at.parts[1]));
      element = address.tensor.empty();
      e = CppExpression(at.parts[0]);
    } else if (e.kind == Kind::kCast || (e.kind == Kind::kPrefix && e.text == "&")) {
      e = CppExpression(e.parts[0]);
    } else if (e.kind == Kind::kCall && e.parts[0].kind == Kind::kMember) {
      // x.data_ptr<float>(), x.value().data_ptr(); x.slice(0, 1) is another place.
      if (e.parts.size() > 1) {
        address.offset = absl::StrCat(CppText(e).substr(CppText(e.parts[0].parts[0]).size()), address.offset);
      }
      e = CppExpression(e.parts[0].parts[0]);
    } else if (e.kind == Kind::kCall && e.parts.size() == 2) {
      e = CppExpression(e.parts[1]);  // thrust::raw_pointer_cast(x.data())
    } else if (e.kind == Kind::kBinary) {
      const bool swapped = e.text == "+" && !IsPointer(e.parts[0], values) &&
                           (e.parts[0].kind == Kind::kNumber || IsPointer(e.parts[1], values));
      absl::StrAppend(&address.offset, " ", e.text, " ", CppText(e.parts[swapped ? 0 : 1]));
      e = CppExpression(e.parts[swapped ? 1 : 0]);
    } else if (e.kind == Kind::kConditional) {
      absl::StrAppend(&address.offset, " of ", CppText(e));
      e = CppExpression(e.parts[1]);
    } else if (e.kind == Kind::kName) {
      const auto found = values.find(e.text);
      if (found == values.end() || found->second.parts.size() != 1) return ends(e.text, e.text);
      const CppExpression& value = found->second.parts[0];
      if (found->second.pointer && value.kind == Kind::kName) return ends(value.text, value.text);
      const std::string text = CppText(value);
      const bool same = absl::StrContains(text, "data_ptr") || absl::StrContains(text, ".data()") ||
                        absl::StrContains(text, "pointer_cast") || value.kind == Kind::kCast;
      // float* b = a + n; is a variable of its own in the memory of a.
      const bool moved = value.kind == Kind::kBinary || (value.kind == Kind::kPrefix && value.text == "&");
      if (!same && !(moved && IsPointer(value, values))) return ends(e.text, e.text);
      if (!same && address.tensor.empty() && !element) address.tensor = e.text;
      e = CppExpression(value);
    } else if (e.kind == Kind::kMember) {
      const auto field = values.find(CppText(e));
      if (field == values.end() || field->second.parts.size() != 1) return ends(e.text, CppText(e));  // params.x
      e = CppExpression(field->second.parts[0]);
    } else {
      break;
    }
  }
  return {address.tensor, "", ""};
}

std::string HostTensor(const CppExpression& argument, const HostValues& values) {
  return AddressOf(argument, values).tensor;
}

}  // namespace pawl

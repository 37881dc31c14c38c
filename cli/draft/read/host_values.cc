// Resolved, LikelyValue and HostTensor, declared in host_launches.h: what the host's variables stand for.
#include <set>

#include "absl/strings/match.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/host_launches.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

constexpr int kMaxSteps = 24;  // from a variable to the variable that it was made of

CppExpression ResolvedWithin(const CppExpression& e, const HostValues& values, const std::map<std::string, bool>& kept,
                             int steps) {
  if (steps > kMaxSteps) return e;
  if (e.kind == Kind::kName) {
    if (kept.contains(e.text)) return e;
    const auto found = values.find(e.text);
    if (found == values.end() || found->second.parts.size() != 1 || found->second.is_dim3) return e;
    const CppExpression& value = found->second.parts[0];
    // What a tensor or the device answers has no better name than the variable's.
    if (value.kind == Kind::kOther || value.kind == Kind::kString || value.kind == Kind::kList) return e;
    if (value.IsName(e.text)) return e;
    CppExpression inner = ResolvedWithin(value, values, kept, steps + 1);
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
      if (axis < found->second.parts.size()) return ResolvedWithin(found->second.parts[axis], values, kept, steps + 1);
      CppExpression one;
      one.kind = Kind::kNumber;
      one.text = "1";
      return one;
    }
  }
  if (e.kind == Kind::kSubscript && e.parts[0].kind == Kind::kName) {
    const auto element = values.find(CppText(e));
    if (element != values.end() && element->second.parts.size() == 1) {
      return ResolvedWithin(element->second.parts[0], values, kept, steps + 1);
    }
    const auto array = values.find(e.parts[0].text);
    const std::optional<int64_t> index = ConstantValue(e.parts[1], {});
    if (array != values.end() && index && *index >= 0 && static_cast<size_t>(*index) < array->second.parts.size() &&
        array->second.parts.size() > 1) {
      return ResolvedWithin(array->second.parts[static_cast<size_t>(*index)], values, kept, steps + 1);
    }
  }
  if (e.kind == Kind::kMember) {
    const auto field = values.find(CppText(e));
    return field != values.end() && field->second.parts.size() == 1
               ? ResolvedWithin(field->second.parts[0], values, kept, steps + 1)
               : e;
  }
  CppExpression result = e;
  const size_t from = e.kind == Kind::kCall ? 1 : 0;
  for (size_t i = from; i < result.parts.size(); ++i)
    result.parts[i] = ResolvedWithin(e.parts[i], values, kept, steps + 1);
  return result;
}

}  // namespace

CppExpression Resolved(const CppExpression& expression, const HostValues& values,
                       const std::map<std::string, bool>& kept) {
  return ResolvedWithin(expression, values, kept, 0);
}

std::optional<int64_t> LikelyValue(const CppExpression& e, const std::map<std::string, int64_t>& names) {
  if (const std::optional<int64_t> value = ConstantValue(e, names)) return value;
  if (e.kind == Kind::kCast) return LikelyValue(e.parts[0], names);
  if (e.kind != Kind::kConditional) return std::nullopt;
  const std::optional<int64_t> otherwise = LikelyValue(e.parts[2], names);
  return otherwise ? otherwise : LikelyValue(e.parts[1], names);
}

std::string HostTensor(const CppExpression& argument, const HostValues& values) {
  CppExpression e = argument;
  for (int step = 0; step < kMaxSteps; ++step) {
    if (e.kind == Kind::kCast || (e.kind == Kind::kPrefix && e.text == "&")) {
      e = CppExpression(e.parts[0]);
    } else if (e.kind == Kind::kCall && e.parts[0].kind == Kind::kMember) {
      e = CppExpression(e.parts[0].parts[0]);  // x.data_ptr<float>(), x.value().data_ptr()
    } else if (e.kind == Kind::kCall && e.parts.size() == 2) {
      e = CppExpression(e.parts[1]);  // thrust::raw_pointer_cast(x.data())
    } else if (e.kind == Kind::kBinary) {
      e = CppExpression(e.parts[0]);
    } else if (e.kind == Kind::kConditional) {
      e = CppExpression(e.parts[1]);
    } else if (e.kind == Kind::kName) {
      const auto found = values.find(e.text);
      if (found == values.end() || found->second.parts.size() != 1) return e.text;
      if (found->second.pointer && found->second.parts[0].kind == Kind::kName) return found->second.parts[0].text;
      const std::string text = CppText(found->second.parts[0]);
      if (!absl::StrContains(text, "data_ptr") && !absl::StrContains(text, ".data()") &&
          found->second.parts[0].kind != Kind::kCast) {
        return e.text;
      }
      e = CppExpression(found->second.parts[0]);
    } else if (e.kind == Kind::kMember) {
      const auto field = values.find(CppText(e));
      if (field == values.end() || field->second.parts.size() != 1) return e.text;  // params.x
      e = CppExpression(field->second.parts[0]);
    } else {
      return "";
    }
  }
  return "";
}

}  // namespace pawl

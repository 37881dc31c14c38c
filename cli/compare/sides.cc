#include "cli/compare/sides.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/names/spelling.h"
#include "cli/connect/bundle_path.h"
#include "cli/text/failure.h"
#include "google/protobuf/util/message_differencer.h"
#include "kernels/bundle_message.h"
#include "kernels/contract.h"
#include "kernels/read/implementation.h"
#include "kernels/space.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

absl::Status WithFix(const std::string& message, const std::string& fix) {
  v1::ErrorDetail detail;
  detail.set_fix(fix);
  return WithDetail(absl::InvalidArgumentError(message), detail);
}

bool IsAssignment(const std::string& text) { return text.find('=') != std::string::npos; }

// "A=1,B=half": parts, where a comma may also be in a word.
std::vector<std::string> Assignments(const std::string& text) {
  std::vector<std::string> parts;
  const std::vector<std::string> pieces = absl::StrSplit(text, ',');
  for (const std::string& part : pieces) {
    if (!parts.empty() && !IsAssignment(part)) {
      absl::StrAppend(&parts.back(), ",", part);
    } else {
      parts.push_back(part);
    }
  }
  return parts;
}

// The start variant with these values.
absl::StatusOr<v1::Variant> ReadVariant(const v1::Bundle& bundle, const std::string& text) {
  v1::Variant variant = StartVariant(bundle);
  for (const std::string& part : Assignments(text)) {
    const std::pair<std::string, std::string> sides = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const v1::Variable* variable = FindVariable(bundle, sides.first);
    if (variable == nullptr) {
      std::vector<std::string> known;
      for (const v1::Variable& one : bundle.variables()) known.push_back(one.name());
      return absl::InvalidArgumentError(
          absl::StrCat(bundle.name(), " has no variable \"", sides.first, "\"", Expected(sides.first, known)));
    }
    absl::StatusOr<int32_t> value = ReadValue(*variable, sides.second);
    if (!value.ok()) return value.status();
    (*variant.mutable_values())[variable->name()] = *value;
  }
  absl::StatusOr<std::string> forbidding = AllowedSpace(bundle).Forbidding(variant);
  if (!forbidding.ok()) return forbidding.status();
  if (!forbidding->empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the bundle's constraint ", *forbidding, " forbids ",
                                                   VariantText(bundle, variant),
                                                   "; give the variables that it names as well: A=1,B=2"));
  }
  return variant;
}

absl::StatusOr<std::shared_ptr<const v1::Bundle>> Load(const std::string& text) {
  absl::StatusOr<v1::Bundle> bundle = LoadBundle(text);
  if (!bundle.ok()) return bundle.status();
  if (IsContractAlone(*bundle)) {
    return WithFix(absl::StrCat(bundle->name(), " is a contract alone: it has no device code to compare"),
                   "name a bundle with source and [[launch]]");
  }
  return std::make_shared<const v1::Bundle>(*std::move(bundle));
}

absl::StatusOr<NamedSide> Patched(const std::shared_ptr<const v1::Bundle>& bundle, const SidesAsked& asked) {
  const std::string fix = absl::StrCat("make the patch against the files of the implementation in ", asked.bundle,
                                       ", with diff -u or git diff; contracts that differ can't be compared");
  absl::StatusOr<ImplementationState> edited =
      PatchImplementation(*bundle, {ImplementationText(*bundle), StartVariant(*bundle)}, asked.patch);
  if (!edited.ok()) return WithFix(absl::StrCat(asked.patch_name, ": ", edited.status().message()), fix);
  v1::Bundle patched = *bundle;
  if (absl::Status status = SetImplementation(edited->text, &patched); !status.ok()) {
    return WithFix(absl::StrCat(asked.patch_name, ": ", status.message()), fix);
  }
  return NamedSide{{std::make_shared<const v1::Bundle>(std::move(patched)), std::move(edited->variant)},
                   asked.patch_name};
}

// Another bundle beside the first.
absl::StatusOr<NamedSide> Other(const v1::Bundle& bundle, const std::string& first, const std::string& second) {
  absl::StatusOr<std::shared_ptr<const v1::Bundle>> other = Load(second);
  if (!other.ok()) return other.status();
  const std::string difference = ContractDifference(bundle, **other, first, second);
  if (!difference.empty()) {
    return WithFix(absl::StrCat("the bundles do not promise the same: ", difference),
                   "make the contracts equal (sizes, tensors but for scratch, reference, tolerance, goal, baseline); "
                   "the implementations may differ in everything");
  }
  return NamedSide{{*other, StartVariant(**other)}, second};
}

absl::Status CheckCount(const SidesAsked& asked) {
  const auto assigned = std::count_if(asked.others.begin(), asked.others.end(), IsAssignment);
  const auto given = static_cast<std::ptrdiff_t>(asked.others.size());
  const bool patched = !asked.patch_name.empty();
  if (patched ? given == 0 : given == 1 || (given == 2 && assigned == 2)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "expected one comparison: BUNDLE --patch FILE, BUNDLE A=1 (with the start), BUNDLE A=1 A=2, or OLD_BUNDLE "
      "NEW_BUNDLE");
}

}  // namespace

absl::StatusOr<NamedSides> ReadSides(const SidesAsked& asked) {
  if (absl::Status status = CheckCount(asked); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<const v1::Bundle>> bundle = Load(asked.bundle);
  if (!bundle.ok()) return bundle.status();
  NamedSides sides = {{{*bundle, StartVariant(**bundle)}, "start"}, {{*bundle, {}}, ""}};
  if (!asked.patch_name.empty()) {
    absl::StatusOr<NamedSide> patched = Patched(*bundle, asked);
    if (!patched.ok()) return patched.status();
    sides.candidate = *std::move(patched);
  } else if (!IsAssignment(asked.others[0])) {
    absl::StatusOr<NamedSide> other = Other(**bundle, asked.bundle, asked.others[0]);
    if (!other.ok()) return other.status();
    sides.base.name = asked.bundle;
    sides.candidate = *std::move(other);
  } else {
    NamedSide* named[] = {&sides.base, &sides.candidate};
    for (size_t i = 0; i < asked.others.size(); ++i) {
      NamedSide& side = *named[i + 2 - asked.others.size()];
      absl::StatusOr<v1::Variant> variant = ReadVariant(**bundle, asked.others[i]);
      if (!variant.ok()) return variant.status();
      side = {{*bundle, *std::move(variant)}, asked.others[i]};
    }
  }
  const ComparedSide &base = sides.base.side, &candidate = sides.candidate.side;
  if (VariantText(base.variant) == VariantText(candidate.variant) &&
      BundleHash(*base.bundle) == BundleHash(*candidate.bundle)) {
    return absl::InvalidArgumentError(
        absl::StrCat(sides.base.name, " and ", sides.candidate.name, " are the same: there is nothing to compare"));
  }
  return sides;
}

absl::StatusOr<std::vector<std::string>> ReadSizes(const v1::Bundle& bundle, const std::vector<std::string>& names,
                                                   bool all) {
  std::vector<std::string> known;
  for (const v1::Size& size : bundle.sizes()) known.push_back(size.name());
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat(bundle.name(), " has no size ", name, Expected(name, known)));
    }
  }
  const auto wanted = [&](const std::string& size) {
    if (all) return true;
    if (!names.empty()) return std::find(names.begin(), names.end(), size) != names.end();
    return bundle.goal().sizes().empty() ? size == bundle.goal().size() : bundle.goal().sizes().contains(size);
  };
  std::vector<std::string> sizes;
  std::copy_if(known.begin(), known.end(), std::back_inserter(sizes), wanted);
  return sizes;
}

}  // namespace pawl

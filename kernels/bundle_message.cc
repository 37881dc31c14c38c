#include "kernels/bundle_message.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/expression/expression.h"
#include "kernels/limits.h"
#include "kernels/plan.h"
#include "kernels/space.h"

namespace pawl {
namespace {

constexpr int kMaxItems = kMaxTables;  // sizes, tensors, variables, launches, ...
constexpr int kMaxValues = kMaxListEntries;

bool HasControlCharacter(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// Inside the bundle's folder, wherever that is.
bool IsSourcePath(const std::string& path) {
  const std::filesystem::path parts(path);
  return !path.empty() && path.size() <= kMaxPath && !HasControlCharacter(path) && parts.is_relative() &&
         parts.has_filename() && std::find(parts.begin(), parts.end(), "..") == parts.end();
}

class Checker {
 public:
  explicit Checker(const v1::Bundle& bundle) : bundle_(bundle) {}

  std::vector<std::string> Problems() {
    Fields();
    if (problems_.empty()) Sources();
    if (problems_.empty()) Names();
    if (problems_.empty()) Tensors();
    if (problems_.empty()) Space();
    if (problems_.empty()) Plans();
    return problems_;
  }

 private:
  void Add(const std::string& problem) { problems_.push_back(problem); }

  void Fields() {
    if (!IsBundleName(bundle_.name())) Add("name: expected a letter, then letters, digits, _ and -, at most 64");
    if (bundle_.source().text().empty()) Add("source: there is no device code");
    if (bundle_.reference().source().text().empty()) Add("reference: there is no source");
    if (bundle_.reference().launches().empty()) Add("reference: there is no launch");
    if (bundle_.compiler() != v1::COMPILER_NVRTC && bundle_.compiler() != v1::COMPILER_NVCC) {
      Add("compiler: expected NVRTC or nvcc");
    }
    const std::pair<const char*, int> counts[] = {{"sizes", bundle_.sizes_size()},
                                                  {"tensors", bundle_.tensors_size()},
                                                  {"variables", bundle_.variables_size()},
                                                  {"launches", bundle_.launches_size()}};
    for (const auto& [what, count] : counts) {
      if (count == 0 || count > kMaxItems) Add(absl::StrCat(what, ": found ", count, ", expected 1 to ", kMaxItems));
    }
    if (bundle_.constraints_size() > kMaxItems || bundle_.scalars_size() > kMaxItems) {
      Add(absl::StrCat("constraints, scalars: expected at most ", kMaxItems));
    }
    Tolerance(bundle_.tolerance(), "tolerance");
  }

  void Tolerance(const v1::Tolerance& tolerance, const std::string& what) {
    if (!(tolerance.absolute() > 0) || !(tolerance.relative() > 0) || !(tolerance.relative() < 1)) {
      Add(absl::StrCat(what, ": expected absolute > 0 and 0 < relative < 1"));
    }
  }

  void Tensors() {
    for (const v1::Tensor& tensor : bundle_.tensors()) {
      const std::string what = absl::StrCat("tensor ", tensor.name());
      const bool input = tensor.role() == v1::TENSOR_ROLE_INPUT;
      if (tensor.low().empty() != tensor.high().empty() || (!input && !tensor.low().empty())) {
        Add(absl::StrCat(what, ": a range has a lowest and a highest value, and only an input has one"));
      }
      if (input && tensor.type() == v1::DATA_TYPE_I32 && tensor.low().empty()) {
        Add(absl::StrCat(what, ": an i32 input must state its range, such as range = [0, 1023]"));
      }
      const int32_t align = tensor.align();
      const bool power = align > 0 && (align & (align - 1)) == 0;
      if (align != 0 && (!power || align < ElementBytes(tensor.type()) || align > kMaxAlign)) {
        Add(absl::StrCat(what, ": align: expected a power of two from ", ElementBytes(tensor.type()), " to ",
                         kMaxAlign));
      }
      if (!tensor.has_tolerance()) continue;
      if (tensor.role() != v1::TENSOR_ROLE_OUTPUT) Add(absl::StrCat(what, ": only an output has a tolerance"));
      if (!tensor.tolerance().exact()) Tolerance(tensor.tolerance(), what);
    }
    for (const auto& [name, range] : bundle_.hidden()) {
      const int64_t multiple = std::max(1, range.multiple());
      if (range.multiple() < 0 || range.low() < 1 || range.high() / multiple * multiple < range.low()) {
        Add(absl::StrCat("hidden: expected 1 or more, and a range with a multiple of ", multiple, " in it, of ", name));
      }
    }
  }

  void Sources() {
    const auto check = [&](const v1::SourceFile& file, const char* what) {
      if (!IsSourcePath(file.path())) {
        Add(absl::StrCat(what,
                         ": expected a path inside of the bundle's folder, without .. and control characters, of "
                         "at most ",
                         kMaxPath, " bytes"));
      }
      if (file.text().find('\0') != std::string::npos) Add(absl::StrCat(what, ": its text has a NUL character"));
    };
    check(bundle_.source(), "source");
    check(bundle_.reference().source(), "reference");
    for (const v1::SourceFile& file : bundle_.baseline_files()) check(file, "baseline");
    const auto entries = [&](const auto& launches, const char* what) {
      for (const v1::Launch& launch : launches) {
        if (!IsName(launch.entry()))
          Add(absl::StrCat(what,
                           ": an entry is not a kernel's name: a letter or _, then "
                           "letters, digits and _"));
      }
    };
    entries(bundle_.launches(), "launches");
    entries(bundle_.reference().launches(), "reference");
  }

  void Names() {
    std::set<std::string> names;
    auto take = [&](const std::string& name, const char* what) {
      if (!IsName(name)) Add(absl::StrCat(what, ": not a valid name"));
      if (!names.insert(name).second) Add(absl::StrCat(what, ": the name ", name, " is taken"));
    };
    for (const v1::Variable& variable : bundle_.variables()) {
      take(variable.name(), "variable");
      const auto& values = variable.values();
      const std::set<int32_t> distinct(values.begin(), values.end());
      if (values.empty() || values.size() > kMaxValues || static_cast<int>(distinct.size()) != values.size()) {
        Add(absl::StrCat("variable ", variable.name(), ": expected 1 to ", kMaxValues, " different values"));
      } else if (!distinct.contains(variable.start())) {
        Add(absl::StrCat("variable ", variable.name(), ": start is not one of its values"));
      }
    }
    for (const v1::Tensor& tensor : bundle_.tensors()) take(tensor.name(), "tensor");
    for (const v1::Scalar& scalar : bundle_.scalars()) take(scalar.name(), "scalar");
    std::set<std::string> sizes;
    for (const v1::Size& size : bundle_.sizes()) {
      if (size.name().empty() || !sizes.insert(size.name()).second) Add("sizes: a name is empty or used twice");
      if (size.name().size() > kMaxSizeName || HasControlCharacter(size.name())) {
        Add(absl::StrCat("sizes: expected names of at most ", kMaxSizeName, " bytes without control characters"));
      }
      if (size.values().empty() || size.values_size() > kMaxItems) Add("sizes: one has no values");
    }
    if (!sizes.contains(bundle_.goal().size())) Add("goal: its size is not one of the sizes");
    if (!(bundle_.goal().speedup() > 0)) Add("goal: expected a speedup above 0");
  }

  void Space() {
    if (SpaceSize(bundle_) > kMaxSpace) Add(absl::StrCat("variables: the space is over ", kMaxSpace, " variants"));
    const absl::StatusOr<bool> allowed = IsAllowed(bundle_, StartVariant(bundle_));
    if (!allowed.ok()) Add(absl::StrCat("constraints: ", std::string(allowed.status().message())));
    if (allowed.ok() && !*allowed) Add("constraints: they forbid the start variant");
  }

  void Plans() {
    Planner planner(bundle_);
    for (const v1::Size& size : bundle_.sizes()) {
      const absl::StatusOr<v1::Plan> plan = planner.MakePlan(StartVariant(bundle_), size, TypicalGpu());
      if (!plan.ok()) Add(absl::StrCat("size ", size.name(), ": ", std::string(plan.status().message())));
      const absl::StatusOr<v1::Plan> reference = planner.MakeReferencePlan(size, TypicalGpu());
      if (!reference.ok()) Add(absl::StrCat("size ", size.name(), ": ", std::string(reference.status().message())));
      if (!problems_.empty()) return;
    }
  }

  const v1::Bundle& bundle_;
  std::vector<std::string> problems_;
};

}  // namespace

bool IsBundleName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxBundleName && std::isalpha(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
}

std::vector<std::string> BundleProblems(const v1::Bundle& bundle) { return Checker(bundle).Problems(); }

}  // namespace pawl

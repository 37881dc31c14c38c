// Which kernels and launches of a source are drafted (declared in drafting.h).
#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/names/spelling.h"
#include "cli/draft/drafting.h"

namespace pawl {
namespace {

std::string LowerName(const SourceFunction& function) { return absl::AsciiStrToLower(function.name); }

bool IsTorchType(const std::string& type) {
  for (const char* word :
       {"TensorAccessor", "at::Tensor", "torch::", "TensorInfo", "PhiloxCudaState", "TensorIterator"}) {
    if (absl::StrContains(type, word)) return true;
  }
  return false;
}

}  // namespace

absl::Status Drafting::Choose(const std::string& entry) {
  std::vector<const SourceFunction*> kernels;
  for (const SourceFunction& function : model_.functions) {
    if (function.kernel) kernels.push_back(&function);
  }
  const std::string& path = model_.files[0]->path;
  if (kernels.empty()) {
    // A file without the word has no kernel, whatever else libclang says.
    const bool written = std::any_of(model_.files.begin(), model_.files.end(), [](const auto& file) {
      return std::any_of(file->tokens.begin(), file->tokens.end(),
                         [](const CppToken& token) { return token.Is("__global__"); });
    });
    std::string none = absl::StrCat(path, " has no __global__ function with a body");
    const bool driver = std::any_of(model_.files.begin(), model_.files.end(), [](const auto& file) {
      return std::any_of(file->tokens.begin(), file->tokens.end(),
                         [](const CppToken& token) { return token.text.starts_with("cuLaunchKernel"); });
    });
    if (driver) {
      absl::StrAppend(&none,
                      ", and launches by cuLaunchKernel what another file has: name the kernel's source; for PTX ",
                      "or a cubin write kernel.toml by hand (docs/bringing-kernels.md, PTX)");
    }
    return absl::InvalidArgumentError(
        model_.first_error.empty() || !written ? none : absl::StrCat(model_.first_error, "; as it is read, ", none));
  }
  constexpr size_t kMostListed = 20;
  std::vector<std::string> names, listed;
  for (const SourceFunction* kernel : kernels) {
    names.push_back(kernel->name);
    if (listed.size() < kMostListed)
      listed.push_back(absl::StrCat(kernel->qualified, " (", kernel->file->path, ":", kernel->line, ")"));
  }
  if (kernels.size() > kMostListed) listed.push_back(absl::StrCat(kernels.size() - kMostListed, " more"));
  if (entry.empty() && kernels.size() > 1) {
    const std::string hosts = LaunchingHosts();
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", kernels.size(), " kernels: ", absl::StrJoin(listed, ", "),
                     ". Choose with --entry: one kernel, several in the order of their launches (--entry ", names[0],
                     ",", names[1], ")", hosts.empty() ? "" : ", or a host function that launches them: ", hosts));
  }
  if (entry.empty()) {
    TakeKernel(*kernels[0], {kernels[0]});
    return absl::OkStatus();
  }
  std::vector<const SourceFunction*> asked;
  for (absl::string_view part : absl::StrSplit(entry, ',')) {
    const std::string name(absl::StripAsciiWhitespace(part));
    asked.push_back(model_.Find(name));
    if (asked.back() != nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has no kernel ", name, Suggestion(name, names), "; it has ", absl::StrJoin(listed, ", ")));
  }
  for (const SourceFunction* function : asked) {
    for (const HostLaunch& launch : launches_) {
      const SourceFunction* other = launch.host;
      if (function->kernel || other == nullptr || other->name != function->name) continue;
      if (other->qualified == function->qualified || absl::StrContains(entry, function->qualified)) continue;
      return absl::InvalidArgumentError(absl::StrCat(path, " has several functions ", function->name,
                                                     " that launch: ", function->qualified, ", ", other->qualified,
                                                     "; name one of them in full"));
    }
    const size_t before = planned_.size();
    if (function->kernel) TakeKernel(*function, asked);
    for (const HostLaunch& launch : launches_) {
      if (!function->kernel && launch.host == function) TakeLaunch(launch);
    }
    if (planned_.size() > before) continue;
    return absl::InvalidArgumentError(absl::StrCat(function->name, " launches no kernel of ", path,
                                                   "; its kernels are ", absl::StrJoin(listed, ", ")));
  }
  return absl::OkStatus();
}

std::string Drafting::LaunchingHosts() const {
  std::vector<std::pair<const SourceFunction*, std::vector<std::string>>> hosts;
  for (const HostLaunch& launch : launches_) {
    if (launch.host == nullptr || launch.kernel == nullptr) continue;
    if (hosts.empty() || hosts.back().first != launch.host) hosts.push_back({launch.host, {}});
    std::vector<std::string>& kernels = hosts.back().second;
    if (std::find(kernels.begin(), kernels.end(), launch.kernel->name) == kernels.end()) {
      kernels.push_back(launch.kernel->name);
    }
  }
  return absl::StrJoin(hosts, "; ", [this](std::string* out, const auto& host) {
    absl::StrAppend(out, model_.NameFor(*host.first), " (", absl::StrJoin(host.second, ", "), ")");
  });
}

void Drafting::TakeKernel(const SourceFunction& kernel, const std::vector<const SourceFunction*>& asked) {
  const size_t first = planned_.size();
  const SourceFunction* host = nullptr;
  std::set<std::string> others;
  for (const HostLaunch& launch : launches_) {
    if (launch.kernel == &kernel && host == nullptr) host = launch.host;
  }
  std::vector<std::string> again;
  for (const HostLaunch& launch : launches_) {
    if (launch.host != host) continue;
    if (launch.kernel != &kernel) {
      if (std::find(asked.begin(), asked.end(), launch.kernel) == asked.end()) others.insert(launch.kernel->name);
    } else if (planned_.size() == first || Exclude(*planned_[first].launch, launch)) {
      TakeLaunch(launch);
    } else {
      again.push_back(absl::StrCat(launch.line));
    }
  }
  if (!again.empty()) {
    draft_.remarks.push_back(absl::StrCat(
        host->name, " launches ", kernel.name, " again in line ", absl::StrJoin(again, ", "),
        ": the draft has the first launch only; `--entry ", model_.NameFor(*host), "` drafts all of them"));
  }
  if (!others.empty()) {
    draft_.remarks.push_back(absl::StrCat(host->name, " also launches ", absl::StrJoin(others, ", "), "; `--entry ",
                                          model_.NameFor(*host), "` drafts the whole call"));
  }
  if (planned_.size() == first) {
    planned_.emplace_back();
    planned_.back().kernel = &kernel;
  }
}

void Drafting::TakeLaunch(const HostLaunch& launch) {
  const auto texts = [](const HostLaunch& made) {
    std::string text;
    for (const CppExpression& argument : made.arguments)
      absl::StrAppend(&text, CppText(argument), " of ", HostTensor(argument, made.values), ", ");
    return text;
  };
  for (PlannedKernel& planned : planned_) {
    if (planned.kernel != launch.kernel || planned.launch == nullptr) continue;
    // The same once more, as a benchmark does.
    const bool excluded = texts(*planned.launch) == texts(launch) || Exclude(*planned.launch, launch);
    if (!excluded) continue;
    const std::string what = absl::StrCat("the launch of ", launch.kernel->name, " in line ", launch.line);
    std::string remark = launch.line == planned.launch->line
                             ? absl::StrCat(what, " is made in several ways: the draft has the first")
                             : absl::StrCat(what, " is left out: the draft has the one in line ", planned.launch->line);
    // What the first caller passes says which of them runs.
    if (launch.runs == true && planned.launch->runs == false) {
      remark = launch.line == planned.launch->line
                   ? absl::StrCat(what, " is made in several ways: the draft has the one of the first caller")
                   : absl::StrCat("the launch of ", launch.kernel->name, " in line ", planned.launch->line,
                                  " is left out: the draft has the one in line ", launch.line,
                                  ", which the first caller makes");
      for (std::string& other : draft_.remarks) {
        const std::string had = absl::StrCat("the draft has the one in line ", planned.launch->line);
        if (absl::StrContains(other, absl::StrCat("launch of ", launch.kernel->name, " ")) &&
            absl::EndsWith(other, had))
          other =
              absl::StrCat(other.substr(0, other.size() - had.size()), "the draft has the one in line ", launch.line);
      }
      planned.launch = &launch;
    }
    if (std::find(draft_.remarks.begin(), draft_.remarks.end(), remark) == draft_.remarks.end())
      draft_.remarks.push_back(std::move(remark));
    return;
  }
  planned_.emplace_back();
  planned_.back().kernel = launch.kernel;
  planned_.back().launch = &launch;
}

absl::Status Drafting::CheckParameters(const PlannedKernel& planned) const {
  const SourceFunction& kernel = *planned.kernel;
  if (std::any_of(kernel.name.begin(), kernel.name.end(),
                  [](char c) { return static_cast<unsigned char>(c) > 0x7f; })) {
    return absl::InvalidArgumentError(absl::StrCat(kernel.file->path, ":", kernel.line, ": the compiler takes no name ",
                                                   "like ", kernel.name,
                                                   " for a kernel: rename it with letters of ASCII"));
  }
  for (const SourceParameter& parameter : kernel.parameters) {
    const std::string where = absl::StrCat(kernel.file->path, ":", kernel.line, ": ", kernel.name);
    if (IsTorchType(parameter.type.element) || IsTorchType(parameter.type.spelling)) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, " takes ", parameter.name, " as ", parameter.type.spelling,
          ", a type of PyTorch's. Let it take a pointer and the extents it needs (const float* ", parameter.name,
          ", int rows, ...); the host passes ", parameter.name, ".data_ptr<float>() and ", parameter.name, ".size(0)"));
    }
    const bool is_template =
        std::any_of(kernel.templates.begin(), kernel.templates.end(),
                    [&](const TemplateParameter& own) { return own.is_type && own.name == parameter.type.element; });
    if (absl::EndsWith(parameter.type.spelling, "...")) {
      return absl::InvalidArgumentError(absl::StrCat(where, " takes a pack of arguments, ", parameter.type.spelling,
                                                     " ", parameter.name,
                                                     ": write a kernel that names each of its parameters"));
    }
    // const F& f is a pointer to libclang.
    const bool by_value = parameter.type.pointers == 0 || absl::EndsWith(parameter.type.spelling, "&");
    if (is_template && by_value &&
        (planned.body.called.contains(parameter.name) ||
         HasWord(parameter.type.element, {"func", "functor", "lambda", "op_t", "_op"}))) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " takes ", parameter.name, " as ", parameter.type.spelling,
                       ", a function object, which a launch of Pawl can't pass: write a kernel "
                       "that calls the function itself"));
    }
    if (is_template && by_value && HasWord(parameter.type.element, {"layout", "shape", "stride", "tiler", "tiled"})) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " takes ", parameter.name, " as ", parameter.type.spelling,
                       ", an object of a library such as CuTe, which a launch of Pawl can't pass: write a kernel that "
                       "takes the extents and strides as integers and makes the object of them"));
    }
    for (const char* word : {"(*)", "cudaTextureObject_t", "cudaSurfaceObject_t", "CUtensorMap", "curandState"}) {
      if (!absl::StrContains(parameter.type.spelling, word)) continue;
      return absl::InvalidArgumentError(absl::StrCat(where, " takes ", parameter.name, " as ", parameter.type.spelling,
                                                     ", which only host code of a program can make: let it take the "
                                                     "pointer and the extents, and load through them"));
    }
  }
  return absl::OkStatus();
}

std::string Drafting::BundleNameOf(const SourceFunction& kernel) {
  std::string name = LowerName(kernel);
  for (const char* suffix : {"_kernel", "kernel"}) {
    if (absl::EndsWith(name, suffix) && name.size() > std::string_view(suffix).size()) {
      name.resize(name.size() - std::string_view(suffix).size());
    }
  }
  while (!name.empty() && (name[0] == '_' || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))))
    name.erase(0, 1);
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name.empty() ? "kernel" : name.substr(0, 64);
}

}  // namespace pawl

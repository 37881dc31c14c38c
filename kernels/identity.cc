// Content hashes of bundles and variants (declared in space.h). Every field is written with its length, so that no two
// different contents give the same text.
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "kernels/data_type.h"
#include "kernels/entry_name.h"
#include "kernels/space.h"

namespace pawl {
namespace {

class Content {
 public:
  void Add(const std::string& text) { absl::StrAppend(&bytes_, text.size(), ":", text, ","); }
  void Add(int64_t number) { absl::StrAppend(&bytes_, number, ","); }
  template <typename List>
  void AddList(const List& list) {
    Add(list.size());
    for (const auto& entry : list) Add(entry);
  }
  // Protobuf's maps have no order.
  template <typename Map>
  void AddMap(const Map& map) {
    const std::map<std::string, int64_t> sorted(map.begin(), map.end());
    Add(sorted.size());
    for (const auto& [name, value] : sorted) {
      Add(name);
      Add(value);
    }
  }
  std::string Hash() const { return Sha256(bytes_); }

 private:
  std::string bytes_;
};

void AddLaunch(const v1::Launch& launch, Content& content) {
  content.Add(launch.entry());
  content.Add(launch.when());
  content.AddList(launch.grid());
  content.AddList(launch.block());
  content.Add(launch.shared());
  content.AddList(launch.arguments());
  // From here on: only what is not at its default, so that what was hashed before keeps its hash.
  if (!launch.repeat().empty()) content.Add(absl::StrCat("repeat ", launch.repeat()));
  if (!launch.index().empty()) content.Add(absl::StrCat("index ", launch.index()));
  if (!launch.swap().empty()) content.AddList(launch.swap());
  if (launch.cooperative()) content.Add(std::string("cooperative"));
  if (!launch.cluster().empty()) {
    content.Add(std::string("cluster"));
    content.AddList(launch.cluster());
  }
  if (!launch.loop().empty()) content.Add(absl::StrCat("loop ", launch.loop()));
}

template <typename Symbols>
void AddSymbols(const std::string& whose, const Symbols& symbols, Content& content) {
  for (const v1::Symbol& symbol : symbols) {
    content.Add(absl::StrCat(whose, "symbol ", symbol.name()));
    content.Add(symbol.tensor());
  }
}

// What the implementation has beside its source's text.
void AddFiles(const v1::Bundle& bundle, Content& content) {
  if (!bundle.source().binary().empty()) content.Add(absl::StrCat("binary ", Sha256(bundle.source().binary())));
  for (const v1::SourceFile& file : bundle.files()) {
    content.Add(absl::StrCat("file ", file.path()));
    content.Add(file.text());
  }
  for (const std::string& name : bundle.include()) content.Add(absl::StrCat("include ", name));
  if (bundle.skip_host_code()) content.Add(std::string("skip host code"));
}

void AddWords(const v1::Variable& variable, Content& content) {
  if (variable.flag()) content.Add(std::string("flag"));
  if (!variable.replaces().empty()) content.Add(absl::StrCat("replaces ", variable.replaces()));
  if (variable.words().empty()) return;
  content.Add(std::string("words"));
  content.AddList(variable.words());
}

}  // namespace

std::string BundleHash(const v1::Bundle& bundle) {
  Content content;
  content.Add("bundle 2");
  content.Add(bundle.source().text());
  content.Add(bundle.reference().source().text());
  content.Add(bundle.compiler());
  content.AddList(bundle.options());
  content.Add(bundle.sizes_size());
  for (const v1::Size& size : bundle.sizes()) {
    content.Add(size.name());
    content.AddMap(size.values());
  }
  content.Add(bundle.tensors_size());
  for (const v1::Tensor& tensor : bundle.tensors()) {
    content.Add(tensor.name());
    content.Add(tensor.type());
    content.Add(tensor.role());
    content.Add(tensor.fill());
    content.AddList(tensor.shape());
    // Written only where they are stated, so that bundles of version 0.1.0 keep their hashes. The range of a float
    // input is left out: it is what validation draws from, and no time depends on it.
    if (tensor.align() != 0) content.Add(absl::StrCat("align ", tensor.align()));
    if ((!IsFloat(tensor.type()) || tensor.fill() > v1::FILL_UNIFORM) && !tensor.low().empty()) {
      content.Add(absl::StrCat("range ", tensor.low(), " to ", tensor.high()));
    }
    if (tensor.has_tolerance()) {
      const v1::Tolerance& own = tensor.tolerance();
      content.Add(absl::StrCat("tolerance ", own.absolute(), " ", own.relative(), " ", own.exact()));
    }
    if (!tensor.file().empty()) content.Add(absl::StrCat("data ", tensor.file()));
    if (tensor.is_static()) content.Add(std::string("static"));
    if (tensor.file_holds() != v1::FILL_UNSPECIFIED) content.Add(absl::StrCat("holds ", tensor.file_holds()));
  }
  content.Add(bundle.scalars_size());
  for (const v1::Scalar& scalar : bundle.scalars()) {
    content.Add(scalar.name());
    content.Add(scalar.type());
    content.Add(scalar.value());
  }
  content.Add(bundle.variables_size());
  for (const v1::Variable& variable : bundle.variables()) {
    content.Add(variable.name());
    content.AddList(variable.values());
    content.Add(variable.start());
    content.Add(variable.option());
    AddWords(variable, content);
  }
  content.Add(bundle.constraints_size());
  for (const v1::Constraint& constraint : bundle.constraints()) content.Add(constraint.that());
  content.Add(bundle.launches_size());
  for (const v1::Launch& launch : bundle.launches()) AddLaunch(launch, content);
  content.Add(bundle.reference().launches_size());
  for (const v1::Launch& launch : bundle.reference().launches()) AddLaunch(launch, content);
  // What decides whether a variant passes and how its time is taken.
  content.Add(absl::StrCat(bundle.tolerance().absolute(), " ", bundle.tolerance().relative()));
  content.Add(bundle.timing());
  content.Add(bundle.nondeterministic());
  content.Add(bundle.work_flops());
  content.Add(bundle.work_bytes());
  content.Add(bundle.work_on_tensor_cores());
  std::map<std::string, int64_t> hidden;
  for (const auto& [name, range] : bundle.hidden()) {
    hidden[name + " low"] = range.low();
    hidden[name + " high"] = range.high();
    if (range.multiple() > 1) hidden[name + " multiple"] = range.multiple();
  }
  content.AddMap(hidden);
  AddFiles(bundle, content);
  if (bundle.has_problem()) content.Add(absl::StrCat("problem ", bundle.problem().text()));
  for (const v1::StructArgument& argument : bundle.structs()) {
    content.Add(absl::StrCat("struct ", argument.name(), " ", argument.in_memory()));
    content.AddList(argument.fields());
  }
  if (bundle.has_setup()) {
    content.Add(absl::StrCat("setup ", bundle.setup().source().text()));
    for (const v1::Launch& launch : bundle.setup().launches()) AddLaunch(launch, content);
  }
  for (const v1::DataFile& file : bundle.data_files()) {
    content.Add(absl::StrCat("data file ", file.path(), " ", Sha256(file.data())));
  }
  AddSymbols("", bundle.symbols(), content);
  AddSymbols("reference ", bundle.reference().symbols(), content);
  for (const v1::SourceFile& file : bundle.reference().files()) {
    content.Add(absl::StrCat("reference file ", file.path()));
    content.Add(file.text());
  }
  for (const std::string& path : bundle.problem_files()) content.Add(absl::StrCat("problem file ", path));
  return content.Hash();
}

std::string VariantHash(const v1::Bundle& bundle, const v1::Variant& variant, const std::string& architecture) {
  Content content;
  content.Add("variant 1");
  content.Add(bundle.source().text());
  content.Add(bundle.compiler());
  content.AddList(bundle.options());
  for (const v1::Variable& variable : bundle.variables()) {
    if (!variable.option().empty()) content.Add(absl::StrCat(variable.name(), " ", variable.option()));
    AddWords(variable, content);
  }
  content.AddMap(variant.values());
  content.Add(architecture);
  AddFiles(bundle, content);
  // Template arguments are instantiated by them.
  for (const v1::Launch& launch : bundle.launches()) {
    if (IsCppEntry(launch.entry())) content.Add(absl::StrCat("entry ", launch.entry()));
  }
  return content.Hash();
}

}  // namespace pawl

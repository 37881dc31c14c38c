// Pointers as [[tensor]] tables: which are the same memory, roles and shapes (declared in drafting.h).
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/expression/expression.h"
#include "cli/draft/drafting.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/translation.h"
#include "cli/draft/shapes.h"

namespace pawl {
namespace {

// Which parameter of the kernel a pointer's key belongs to: x, or params of params.x.
size_t IndexOf(const SourceFunction& kernel, const std::string& key) {
  const std::string name = key.substr(0, key.find('.'));
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (kernel.parameters[i].name == name) return i;
  }
  return kernel.parameters.size();
}

}  // namespace

void Drafting::Tensors() {
  std::vector<TensorUse> tensors;
  for (size_t i = 0; i < planned_.size(); ++i) {
    PlannedKernel& planned = planned_[i];
    for (const auto& [key, index] : PointersOf(*planned.kernel)) {
      const CppExpression* given = GivenPointer(planned, key, index);
      const HostAddress address = given == nullptr ? HostAddress() : AddressOf(*given, planned.launch->values);
      const std::string host = address.tensor.empty() ? address.root : address.tensor;
      const auto own = [&](const TensorUse& use) {
        return std::any_of(use.uses.begin(), use.uses.end(), [&](const auto& other) { return other.first == i; });
      };
      // The same pointer twice in one launch, as in place, is one tensor; another place in its memory is not.
      const auto is_there = [&](const auto& other) {
        if (other.first != i) return true;
        const CppExpression* known = GivenPointer(planned, other.second, IndexOf(*planned.kernel, other.second));
        const bool is_array = TypeOfPointer(*planned.kernel, other.second).pointers > 1 ||
                              TypeOfPointer(*planned.kernel, key).pointers > 1;
        if (known == nullptr || is_array || address.root.empty()) return false;
        const HostAddress other_address = AddressOf(*known, planned.launch->values);
        return other_address.root == address.root && other_address.offset == address.offset;
      };
      const auto takes = [&](const TensorUse& known) {
        if (host.empty() ? known.name != key : known.host != host) return false;
        return !own(known) || std::all_of(known.uses.begin(), known.uses.end(), is_there);
      };
      auto same = std::find_if(tensors.begin(), tensors.end(),
                               [&](const TensorUse& known) { return known.offset == address.offset && takes(known); });
      if (same == tensors.end()) same = std::find_if(tensors.begin(), tensors.end(), takes);
      if (same != tensors.end()) {
        same->uses.push_back({i, key});
        continue;
      }
      TensorUse use;
      use.host = host;
      use.offset = address.offset;
      use.name = planned_.size() == 1 || host.empty() ? key : ShortName(host);
      use.uses = {{i, key}};
      tensors.push_back(std::move(use));
    }
  }
  for (TensorUse& use : tensors) AddTensor(use);
  NoteOverlaps();
  SetRanges();
}

const CppExpression* Drafting::GivenPointer(const PlannedKernel& planned, const std::string& key, size_t index) {
  if (planned.launch == nullptr || index >= planned.launch->arguments.size()) return nullptr;
  const CppExpression* given = &planned.launch->arguments[index];
  const SourceParameter& parameter = planned.kernel->parameters[index];
  for (size_t field = 0; absl::StrContains(key, ".") && field < parameter.fields.size(); ++field) {
    if (absl::StrCat(parameter.name, ".", parameter.fields[field].name) == key)
      return FieldOf(parameter, field, given, planned);
  }
  return given;
}

void Drafting::NoteOverlaps() {
  struct Place {
    std::string tensor;
    HostAddress address;
    int line = 0;
  };
  std::map<std::pair<const SourceFunction*, std::string>, Place> seen;  // by host and root: the first
  for (const PlannedKernel& planned : planned_) {
    for (const auto& [key, index] : PointersOf(*planned.kernel)) {
      const CppExpression* given = GivenPointer(planned, key, index);
      const auto tensor = planned.tensors.find(key);
      if (given == nullptr || tensor == planned.tensors.end()) continue;
      const HostAddress address = AddressOf(*given, planned.launch->values);
      if (address.root.empty()) continue;
      const Place place = {tensor->second, address, planned.launch->line};
      const auto [found, added] = seen.try_emplace({planned.launch->host, address.root}, place);
      const Place& first = found->second;
      if (added || first.address.offset == address.offset) continue;
      const std::string lines = first.line == place.line
                                    ? absl::StrCat("line ", place.line, " passes")
                                    : absl::StrCat("lines ", first.line, " and ", place.line, " pass");
      const std::string here = first.tensor == place.tensor
                                   ? absl::StrCat(place.tensor, " is both")
                                   : absl::StrCat(first.tensor, " and ", place.tensor, " are tensors of their own");
      const std::string todo = absl::StrCat("memory: ", lines, " `", first.address.root, first.address.offset,
                                            "` and `", address.root, address.offset, "`, one allocation; here ", here,
                                            ", and an argument has no offset: if the kernel reaches from one into the "
                                            "other, let it take one pointer and the offset");
      for (DraftTensor& own : draft_.tensors) {
        if (own.name != tensor->second) continue;
        if (std::find(own.todos.begin(), own.todos.end(), todo) == own.todos.end()) own.todos.push_back(todo);
      }
    }
  }
}

void Drafting::SetRanges() {
  for (const auto& [which, parameter, extent] : indexed_) {
    const auto tensor = planned_[which].tensors.find(parameter);
    if (tensor == planned_[which].tensors.end()) continue;
    const auto unknown = size_of_.find(extent);
    for (DraftTensor& own : draft_.tensors) {
      if (own.name != tensor->second || !own.range_high.empty() || !IsWholeType(own.type)) continue;
      const std::string reach = absl::StartsWith(extent, "?") && unknown != size_of_.end() ? unknown->second : extent;
      if (absl::StrContains(reach, "?")) continue;
      own.range_high = absl::StrCat(reach, " - 1");
      if (!absl::EndsWith(extent.substr(0, extent.find(' ')), absl::StrCat("?", parameter))) continue;
      // Ends of ranges, of which the last is the end of all.
      own.range_high = reach;
      own.offsets = own.shape.size() == 1 && absl::EndsWith(own.shape[0], " + 1");
      own.todos.push_back(absl::StrCat("fill: its values delimit ranges and must rise: ",
                                       own.offsets ? "taken for row offsets from 0; if they are others, " : "",
                                       "make them in inputs() of problem.py"));
    }
  }
}

std::string Drafting::ShortName(const std::string& host) {
  for (const char* prefix : {"d_", "dev_", "device_"}) {
    if (absl::StartsWith(host, prefix) && host.size() > std::string_view(prefix).size()) {
      return host.substr(std::string_view(prefix).size());
    }
  }
  return host;
}

std::vector<std::pair<std::string, size_t>> Drafting::PointersOf(const SourceFunction& kernel) {
  std::vector<std::pair<std::string, size_t>> pointers;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const SourceParameter& parameter = kernel.parameters[i];
    if (parameter.type.pointers > 0) pointers.push_back({parameter.name, i});
    for (const SourceParameter& field : parameter.fields) {
      if (field.type.pointers > 0) pointers.push_back({absl::StrCat(parameter.name, ".", field.name), i});
    }
  }
  return pointers;
}

const SourceType& Drafting::TypeOfPointer(const SourceFunction& kernel, const std::string& key) {
  for (const SourceParameter& parameter : kernel.parameters) {
    if (parameter.name == key) return parameter.type;
    for (const SourceParameter& field : parameter.fields) {
      if (absl::StrCat(parameter.name, ".", field.name) == key) return field.type;
    }
  }
  return kernel.parameters[0].type;
}

void Drafting::AddTensor(TensorUse& use) {
  PlannedKernel& first = planned_[use.uses[0].first];
  const SourceType& type = TypeOfPointer(*first.kernel, use.uses[0].second);
  DraftTensor tensor;
  tensor.name = FreeName(LastName(use.name));
  for (const auto& [which, key] : use.uses) planned_[which].tensors[key] = tensor.name;
  const std::optional<ElementType> element = TypeOf(type, first);
  tensor.type = element ? element->type : "u8";
  int64_t width = element ? element->width : std::max<int64_t>(1, type.bytes);
  if (!element && type.unknown) {
    tensor.type = "f32";
    width = 1;
    tensor.todos.push_back(absl::StrCat("type: ", type.element, " is declared in a header that was not found"));
  } else if (!element) {
    tensor.range_high = "bytes";
    tensor.todos.push_back(absl::StrCat("type: bytes of ", type.element, ", ", width,
                                        " each; random ones may be no numbers: make them in inputs() of problem.py"));
  } else if (type.element == "void") {
    tensor.todos.push_back("type: the parameter is void*");
  }
  tensor.guessed = type.pointers > 1;
  if (type.pointers > 1) tensor.todos.push_back("type: the parameter is a pointer to pointers");
  SetRole(use, tensor);
  SetShape(use, width, tensor);
  if (tensor.role == "output" && tensor.by_data) {
    tensor.role = "inout";
    tensor.todos.push_back("role: other data decide which of its elements are written; the rest keeps what it held");
  }
  if (element && width > 1) tensor.todos.push_back(absl::StrCat("shape: ", width, " elements for each ", type.element));
  draft_.tensors.push_back(std::move(tensor));
}

void Drafting::SetRole(const TensorUse& use, DraftTensor& tensor) {
  bool written = false, read_before = false, read_later = false, known = false, added = false, passed = false;
  for (const auto& [which, key] : use.uses) {
    const PointerUse& uses = planned_[which].body.pointers[key];
    const bool is_const = TypeOfPointer(*planned_[which].kernel, key).is_const;
    const bool reads = is_const || uses.read_first;
    if (reads && !written) read_before = true;
    if (reads && written) read_later = true;
    written = written || (uses.written && !is_const);
    added = added || uses.added_to;
    passed = passed || (uses.passed_on && !is_const);
    known = known || is_const || uses.read || uses.written;
    if (uses.atomic && tensor.type[0] != 'i' && tensor.type[0] != 'u') draft_.deterministic = false;
  }
  const PlannedKernel& first = planned_[use.uses[0].first];
  const HostAllocation made = AllocationOf(model_, first.launch, use.host);
  if (!written && passed) {
    tensor.role = "output";
    tensor.todos.push_back("role: it is passed on to a function that is not in the source");
  } else if (!written) {
    tensor.role = known ? "input" : "output";
    if (!known) tensor.todos.push_back("role: the kernel's body does not use it in a way that is understood");
    if (known && !TypeOfPointer(*first.kernel, use.uses[0].second).is_const) {
      tensor.todos.push_back("role: it is never written, though its pointer is not const");
    }
  } else if (read_before) {
    tensor.role = "inout";
    tensor.todos.push_back(added ? "role: the kernel adds to what it holds" : "role: it is read before it is written");
    if (made.cleared) tensor.range_high = "zeros";
  } else if (read_later && !made.returned &&
             (made.local || HasWord(tensor.name, {"partial", "tmp", "temp", "scratch", "work", "buf", "block_sum"}))) {
    tensor.role = "scratch";
    tensor.todos.push_back("role: a later launch reads what an earlier one wrote");
  } else {
    tensor.role = "output";
    if (read_later && !made.returned)
      tensor.todos.push_back("role: a later launch reads what this one writes; if it is no result, it is scratch");
  }
  if (TypeOfPointer(*first.kernel, use.uses[0].second).pointers > 1 && tensor.role == "input") {
    tensor.role = "inout";
    tensor.todos.push_back("role: what the kernel does with the memory that its pointers name is not followed");
  }
}

void Drafting::SetShape(const TensorUse& use, int64_t width, DraftTensor& tensor) {
  const PlannedKernel& first = planned_[use.uses[0].first];
  const HostAllocation made = AllocationOf(model_, first.launch, use.host);
  HostAllocation made_of = made;
  if (made.shape.empty() && width == 1 && BytesOfType(tensor.type) == 1) made_of.shape = made.bytes;
  std::optional<std::vector<std::string>> shape = AllocatedShape(made_of, first);
  const bool exact = shape.has_value() && !made.flat;
  if (made.flat && made.shape.size() == 1) {
    const CppExpression elements = Resolved(made.shape[0], first.launch->values);
    tensor.allocated = LikelyValue(elements, ConstantValues(model_)).value_or(0) * width;
  }
  bool by_index = false;
  for (const auto& [which, key] : use.uses) {
    if (exact) break;
    PlannedKernel& planned = planned_[which];
    const DraftLaunch& launch = draft_.launches[which];
    IndexedExtents by_data;
    std::optional<std::vector<std::string>> indexed =
        IndexedShape(planned, launch, planned.body.pointers[key].indices, &by_data);
    tensor.by_data = tensor.by_data || !by_data.empty();
    for (const auto& [parameter, extent] : by_data)
      indexed_.push_back({which, parameter, extent == "?" ? absl::StrCat("?", tensor.name) : extent});
    if (indexed && absl::StartsWith((*indexed)[0], "?") && (*indexed)[0].size() > 1)
      indexed_.push_back({which, (*indexed)[0].substr(1), (*indexed)[0]});
    const auto unknown = [](const std::vector<std::string>& s) {
      return std::any_of(s.begin(), s.end(), [](const std::string& e) { return absl::StrContains(e, "?"); });
    };
    if (!indexed || (shape && unknown(*indexed))) continue;
    shape = indexed;
    by_index = true;
    if (!unknown(*indexed)) break;
  }
  if (!shape) {
    shape.emplace();
    for (const auto& [parameter, size] : first.sizes) {
      const bool known =
          std::any_of(draft_.sizes.begin(), draft_.sizes.end(), [&](const DraftSize& own) { return own.name == size; });
      if (known && std::find(shape->begin(), shape->end(), size) == shape->end()) shape->push_back(size);
    }
    // The product of many sizes is hardly a tensor of the kernel's.
    if (shape->size() > 2) {
      *shape = {AddSize(absl::StrCat("?", tensor.name), absl::StrCat(absl::AsciiStrToUpper(tensor.name), "_EXTENT"),
                        std::nullopt, absl::StrCat("elements of ", tensor.name, ": nothing in the source tells them"))};
    }
    if (shape->empty())
      shape->push_back(AddSize("elements", "N", std::nullopt, "nothing in the source says how large"));
    tensor.guessed = true;
    tensor.todos.push_back("shape: neither its indices nor an allocation tell it");
  } else if (!exact) {
    tensor.todos.push_back(by_index ? "shape: from the indices at which it is used" : "shape: from its allocation");
  }
  for (std::string& extent : *shape) {
    if (!absl::StrContains(extent, "?")) continue;
    // The values of another tensor say how far: one size for all that it delimits.
    if (absl::StartsWith(extent, "?") && extent.size() > 1) {
      const std::string other = extent.substr(1), why = absl::StrCat("how far the values of ", other, " reach");
      extent = AddSize(extent, absl::StrCat(absl::AsciiStrToUpper(LastName(other)), "_END"), std::nullopt, why);
      tensor.todos.push_back(absl::StrCat("shape: ", why));
      continue;
    }
    const std::string key = absl::StrCat("?", tensor.name);
    const bool by_data =
        std::any_of(indexed_.begin(), indexed_.end(), [&](const Indexed& index) { return index.extent == key; });
    const std::string why =
        by_data ? "other data decide which of its rows are used" : "how large an index gets is not understood";
    extent = AddSize(key, absl::StrCat(absl::AsciiStrToUpper(tensor.name), by_data ? "_ROWS" : "_EXTENT"), std::nullopt,
                     absl::StrCat("of ", tensor.name, ": ", why));
    tensor.todos.push_back(absl::StrCat("shape: ", why));
  }
  if (width > 1) shape->push_back(absl::StrCat(width));
  tensor.shape = *std::move(shape);
}

std::optional<std::vector<std::string>> Drafting::IndexedShape(const PlannedKernel& planned, const DraftLaunch& launch,
                                                               const std::vector<CppExpression>& indices,
                                                               IndexedExtents* by_data) const {
  constexpr size_t kMaxVariables = 4;
  std::map<std::string, std::vector<std::string>> ends;  // of the variables of the geometry
  for (const std::vector<std::string>* list : {&launch.grid, &launch.block}) {
    for (const std::string& extent : *list) {
      const absl::StatusOr<std::set<std::string>> names = NamesIn(extent);
      for (const std::string& name : names.ok() ? *names : std::set<std::string>()) {
        const std::vector<std::string> values = variables_->ValuesOf(name);
        if (!values.empty() && ends.size() < kMaxVariables) ends[name] = {values.front(), values.back()};
      }
    }
  }
  const auto variable_of = [&](const std::string& name) -> std::optional<std::string> {
    const auto bound = planned.templates.find(name);
    if (bound == planned.templates.end()) return variables_->NameOf(name);
    for (const TemplateParameter& parameter : planned.kernel->templates) {
      if (parameter.name != name) continue;
      const std::optional<std::string> variable = variables_->NameOf(bound->second);
      return variable ? variable : variables_->TemplateVariable(parameter, bound->second);
    }
    return std::nullopt;
  };
  std::optional<std::vector<std::string>> best;
  double most = -1;
  for (size_t corner = 0; corner < size_t{1} << ends.size(); ++corner) {
    std::map<std::string, std::string> written;
    size_t bit = 0;
    for (const auto& [name, values] : ends) written[name] = values[corner >> bit++ & 1];
    const auto at = [&](const std::vector<std::string>& extents) {
      std::vector<std::string> texts;
      for (const std::string& extent : extents) texts.push_back(WithNames(extent, written));
      return SizesOnly(texts);
    };
    const auto leaf = [&](const CppExpression& e) -> std::optional<std::string> {
      const std::optional<std::string> variable =
          e.kind == CppExpression::Kind::kName ? variable_of(e.text) : std::nullopt;
      const auto value = variable ? written.find(*variable) : written.end();
      return value == written.end() ? KernelLeaf(e, planned) : std::optional(value->second);
    };
    IndexedExtents data;
    std::optional<std::vector<std::string>> shape =
        ShapeOf(indices, {&model_, &planned.body, leaf, at(launch.grid), at(launch.block)}, &data);
    double elements = shape ? 1 : -1;
    for (const std::string& extent : shape ? *shape : std::vector<std::string>()) {
      std::map<std::string, double> sizes;
      const absl::StatusOr<std::set<std::string>> names = NamesIn(extent);
      for (const std::string& name : names.ok() ? *names : std::set<std::string>()) sizes[name] = (1 << 20) + 1;
      elements *= Evaluate(extent, sizes).value_or(1);
    }
    if (corner > 0 && elements <= most) continue;
    most = elements;
    best = std::move(shape);
    *by_data = std::move(data);
  }
  return best;
}

std::string Drafting::LargestOver(const std::string& extent, const std::set<std::string>& names) const {
  constexpr size_t kMaxVariables = 4;
  std::vector<std::pair<std::string, std::vector<std::string>>> ends;
  std::map<std::string, double> values;
  for (const std::string& name : names) {
    if (std::any_of(draft_.sizes.begin(), draft_.sizes.end(), [&](const DraftSize& own) { return own.name == name; })) {
      values[name] = 1 << 20;
    } else if (std::vector<std::string> of = variables_->ValuesOf(name); !of.empty() && ends.size() < kMaxVariables) {
      ends.push_back({name, {of.front(), of.back()}});
    } else {
      return "?";
    }
  }
  std::string best;
  double most = -1;
  for (size_t corner = 0; corner < size_t{1} << ends.size(); ++corner) {
    std::map<std::string, std::string> written;
    for (size_t i = 0; i < ends.size(); ++i) written[ends[i].first] = ends[i].second[corner >> i & 1];
    const std::string text = WithNames(extent, written);
    const absl::StatusOr<double> value = Evaluate(text, values);
    if (!value.ok() || *value <= most) continue;
    most = *value;
    best = text;
  }
  return best.empty() ? "?" : best;
}

std::vector<std::string> Drafting::SizesOnly(const std::vector<std::string>& extents) const {
  std::vector<std::string> only;
  for (const std::string& extent : extents) {
    const absl::StatusOr<std::set<std::string>> names = NamesIn(extent);
    const bool plain = names.ok() && std::all_of(names->begin(), names->end(), [&](const std::string& name) {
                         return std::any_of(draft_.sizes.begin(), draft_.sizes.end(),
                                            [&](const DraftSize& size) { return size.name == name; });
                       });
    only.push_back(plain || !names.ok() ? extent : LargestOver(extent, *names));
  }
  return only;
}

std::optional<std::vector<std::string>> Drafting::AllocatedShape(const HostAllocation& made,
                                                                 const PlannedKernel& planned) {
  if (made.shape.empty() || planned.launch == nullptr) return std::nullopt;
  std::vector<std::string> shape;
  for (const CppExpression& extent : made.shape) {
    std::optional<std::string> text = HostText(extent, planned, nullptr, !made.flat);
    if (!text) return std::nullopt;
    shape.push_back(*std::move(text));
  }
  shape = SizesOnly(shape);
  if (std::find(shape.begin(), shape.end(), "?") != shape.end()) return std::nullopt;
  return shape;
}

}  // namespace pawl

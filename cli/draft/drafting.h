// `pawl init` at work on one source: its rooms are files of their own, in the order in which they come.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/draft/draft.h"
#include "cli/draft/draft_variables.h"
#include "cli/draft/read/element_type.h"
#include "cli/draft/read/host_launches.h"
#include "cli/draft/read/host_tensors.h"
#include "cli/draft/read/kernel_body.h"
#include "cli/draft/read/source_model.h"
#include "cli/draft/shapes.h"

namespace pawl {

// Whether the name has one of these words in it, whatever the case.
bool HasWord(const std::string& name, std::initializer_list<const char*> words);

// A text of kernel.toml with some of its tokens written otherwise, where `written` has something for this token.
std::string Rewritten(const std::string& text,
                      const std::function<std::string(size_t, const std::vector<CppToken>&)>& written);
// The same by name.
std::string WithNames(const std::string& text, const std::map<std::string, std::string>& others);

// A kernel of the draft: one of the host's launches, or one without.
struct PlannedKernel {
  const SourceFunction* kernel = nullptr;
  const HostLaunch* launch = nullptr;
  KernelBody body;
  std::map<std::string, std::string> templates;  // parameter to argument
  std::map<std::string, std::string> sizes;    // the kernel's parameters as kernel.toml's sizes or expressions of them
  std::map<std::string, std::string> tensors;  // the kernel's pointer parameters to tensors
};

// Makes one draft. The model must outlive it.
class Drafting {
 public:
  explicit Drafting(const SourceModel& model);

  absl::StatusOr<Draft> Run(const std::string& entry);

 private:
  // One tensor for each piece of memory, over all launches.
  struct TensorUse {
    std::string name;
    std::vector<std::pair<size_t, std::string>> uses;  // of which planned kernel, as which parameter
    std::string host, offset;                          // what the first of them passes
  };
  struct Indexed {
    size_t which = 0;
    std::string parameter, extent;
  };

  // draft.cc: the whole.
  void Files();
  std::vector<const SourceFunction*> Kernels() const;
  std::vector<const KernelBody*> Bodies() const;
  // A variable without `replaces` is a macro: a word of the source can't be its name.
  std::string FreeVariableName(const std::string& wanted);
  // Blocks of more threads than a GPU can launch are not tried.
  void Constraints();
  std::vector<const HostLaunch*> LaunchesTaken() const;
  // Template arguments of the launch; what the host itself has as a parameter is chosen here.
  void BindTemplates(PlannedKernel& planned);
  std::string TypeArgument(const PlannedKernel& planned, const std::string& parameter, const std::string& given);
  // What a template argument of the host's classes is worth: Config::kThreads.
  std::optional<std::string> ClassNumber(const std::string& argument, const HostLaunch& launch) const;
  // A template argument with the types that were chosen: silu<scalar_t> becomes act::silu<float>.
  std::string WithTypes(const PlannedKernel& planned, const std::string& argument);
  // A type that the host function leaves open: its template's, or that of a dispatching macro.
  bool IsOpenType(const PlannedKernel& planned, const std::string& name) const;
  // What the kernels compute from sizes alone.
  std::vector<std::string> Divided() const;
  void Remarks();

  // draft_repairs.cc: what the draft says in two places that exclude each other.
  // Variables whose names are taken, or that nothing uses.
  void DropVariables();
  // Variables of template arguments on which the geometry may depend, and does not follow.
  void DropUntied();
  // Shapes that are not as large as what the host allocates, where it says both.
  void CompareAllocations();
  // Guessed sizes, and ranges, at which the host would make another launch than the one that is drafted.
  void ObeyConditions();
  // Starts that a constraint forbids.
  void LowerStarts();
  // Sizes that make blocks or grids larger than a GPU can launch.
  void LowerSizes();
  void LowerUntil(const std::vector<std::string>& factors, double most, const std::string& why);
  // Sizes at which a grid has no block.
  void RaiseSizes();
  // Ranges beyond what a type holds, or a block.
  void LimitRanges();
  void FindOutput();

  // draft_choice.cc: which kernels and launches.
  // The kernel or the host function that is asked for, and its launches.
  absl::Status Choose(const std::string& entry);
  // `asked` are all that are drafted.
  void TakeKernel(const SourceFunction& kernel, const std::vector<const SourceFunction*>& asked);
  // "main (pack, reduce); test (pack)": the host functions and what they launch.
  std::string LaunchingHosts() const;
  // Of launches that exclude each other the first is taken.
  void TakeLaunch(const HostLaunch& launch);
  absl::Status CheckParameters(const PlannedKernel& planned) const;
  static std::string BundleNameOf(const SourceFunction& kernel);

  // draft_sizes.cc: integer parameters, and the types of all.
  // A name that is free in kernel.toml.
  std::string FreeName(const std::string& wanted);
  std::string AddSize(const std::string& key, const std::string& wanted, std::optional<int64_t> main, std::string todo);
  // "line 12 has 2048": what else the source says that a name is worth; empty: nothing else.
  std::string Contradictions(const std::string& name, int64_t worth, const PlannedKernel& planned) const;
  // The integer parameters: sizes, or scalars made of sizes.
  void Numbers(PlannedKernel& planned);
  void Number(const SourceParameter& parameter, const CppExpression* argument, PlannedKernel& planned);
  // Integer parameters that are made of sizes, once all sizes are known, and strides that the kernel's indices tell.
  void DerivedNumbers(PlannedKernel& planned, DraftLaunch& launch);
  // Of two expressions over sizes, where all sizes are the same.
  bool IsLarger(const std::string& a, const std::string& b) const;
  // Every parameter of the kernel, and every field of those that are structs as NAME.FIELD, with what the launch gives.
  static void ForEachParameter(const PlannedKernel& planned,
                               const std::function<void(const SourceParameter&, const CppExpression*)>& visit);
  // What the host puts into a field of a struct: Params p{x, n}, or p.n = n.
  static const CppExpression* FieldOf(const SourceParameter& parameter, size_t field, const CppExpression* argument,
                                      const PlannedKernel& planned);
  // n of params.n
  static std::string LastName(const std::string& name);
  static bool IsFlagName(const std::string& name);
  void LoneNumber(const SourceParameter& parameter, PlannedKernel& planned);
  // What the root of an argument is made of, or its name.
  static std::string RootText(const CppExpression& argument, const PlannedKernel& planned);
  // The name at the root of an argument: n of int n = N; is N.
  static std::string RootOf(const CppExpression& argument, const HostValues& values);
  // x.size(0), x.numel(): the text of a call that a tensor answers.
  static std::optional<std::string> TensorCall(const CppExpression& e);
  // Under which key the size of a host's variable stands: of int rows = x.size(0) that is x.size(0).
  static std::string SizeKey(const std::string& root, const HostValues& values);
  // The stride of a contiguous tensor, x.stride(0), as the product of its later extents; nothing: they are not known.
  std::optional<std::string> StrideText(const CppExpression& argument, const PlannedKernel& planned);
  // What the root is worth where the source says it: int n = 1 << 20;
  std::optional<int64_t> WorthOf(const std::string& root, const HostValues& values) const;
  void GivenNumber(const SourceParameter& parameter, const CppExpression& argument, PlannedKernel& planned);
  // grid.x * grid.y of a dim3 that a launch of the host has as its grid or its block.
  bool IsMadeOfGeometry(const CppExpression& e, const HostLaunch& launch) const;
  // int n = rows * cols, where both are the host's own integers: not 1 << 20, and not x.numel() / cols.
  bool IsMadeOfSizes(const CppExpression& e, const HostLaunch& launch) const;
  // An int takes the size itself; a long is a scalar beside a size, which needs another name.
  std::string SizeNameFor(const SourceParameter& parameter, const std::string& root) const;
  std::optional<ElementType> TypeOf(const SourceType& type, const PlannedKernel& planned) const;
  // using bf16 = __nv_bfloat16; typedef float real;
  std::string AliasOf(const std::string& name) const;
  // What a type's name means in a function: an argument of its template, or an alias; empty: it is a type's own.
  std::string TypeMeant(const std::string& name, const SourceFunction& function,
                        const std::map<std::string, std::string>& templates) const;

  // draft_launches.cc: entries, geometry and conditions.
  // What a name of the host is in kernel.toml; a new size where it is an integer that only the host knows.
  std::optional<std::string> HostLeaf(const CppExpression& e, const PlannedKernel& planned, bool may_add);
  // sizeof(T), where T is a type of the kernel's, or the host's own that the draft chose.
  std::optional<std::string> SizeOf(const std::string& type, const PlannedKernel& planned) const;
  // Names of the host's that stay in kernel.toml, whatever they are worth.
  std::map<std::string, bool> Kept(const PlannedKernel& planned) const;
  std::optional<std::string> HostText(const CppExpression& e, const PlannedKernel& planned,
                                      std::string* missing = nullptr, bool may_add = true);
  // x.numel() / x.size(-1)
  static bool IsCountOfRows(const CppExpression& e);
  DraftLaunch Launch(PlannedKernel& planned);
  // What the first caller of the host function passes for one of its template parameters; empty: it is not known.
  std::string PassedTemplate(const std::string& name, const PlannedKernel& planned) const;
  // The same for a parameter that is a number.
  std::optional<int64_t> Passed(const std::string& name, const PlannedKernel& planned) const;
  // The same for one that is not whole, as kernel.toml has it.
  std::optional<std::string> PassedReal(const std::string& name, const PlannedKernel& planned) const;
  // Of a template argument that the constants of the source decide.
  std::optional<bool> Truth(const std::string& argument) const;
  std::string EntryText(const PlannedKernel& planned, DraftLaunch& launch);
  void HostGeometry(PlannedKernel& planned, DraftLaunch& launch);
  void When(const PlannedKernel& planned, DraftLaunch& launch);
  std::optional<std::string> KernelLeaf(const CppExpression& e, const PlannedKernel& planned) const;
  // Where the source names the kernel as a launch does, in a way that is not understood.
  struct KernelUse {
    int line = 0;            // 0: nowhere
    bool is_launch = false;  // it stands before <<<; otherwise behind a name like Launcher::Launch
  };
  KernelUse UseOf(const SourceFunction& kernel) const;
  // Without a launch in the source: threads by __launch_bounds__ or 256, blocks by the bound of the index.
  void GuessGeometry(PlannedKernel& planned, DraftLaunch& launch);
  // A cooperative kernel's grid, of which all blocks must be resident.
  void ResidentGrid(const PlannedKernel& planned, DraftLaunch& launch);

  // draft_geometry.cc: numbers of a launch that follow variables.
  // Numbers of the geometry that are template arguments, or products of them, become their variables; a block that only
  // the launch has becomes one where no number of the grid that stays may depend on it.
  void TieGeometry(const PlannedKernel& planned, DraftLaunch& launch);
  // Whether the kernel has this number itself: in its text, as a constant, or as a template argument.
  bool HasNumber(const PlannedKernel& planned, int64_t number) const;
  // `numbers` are the block's extents before TieGeometry.
  void Shared(const PlannedKernel& planned, const std::vector<std::string>& numbers, DraftLaunch& launch);
  // What stays a number beside a block that is varied, and may be made of it.
  void NoteFixed(const PlannedKernel& planned, DraftLaunch& launch);

  // draft_loops.cc: the host's loops around launches.
  // A loop around one launch.
  void Loop(const PlannedKernel& planned, DraftLaunch& launch);
  // Loops around several launches, and what all loops exchange, once roles and shapes are known.
  void Loops();
  // One of them, around the planned kernels from `first` to `end`.
  void LoopOver(size_t first, size_t end);
  // Why these are not all launches that the host's loop makes; empty: they are.
  std::string WhyNoLoop(size_t first, size_t end) const;
  // Whether the loop's variable is an argument.
  static bool HasIndex(const PlannedKernel& planned);
  // Whether a round reads what the one before it wrote.
  bool IsCarried(size_t first, size_t end) const;
  void Swap(size_t first, size_t end);
  // The tensor of a pointer of the host's that one of these launches gets; empty: none does.
  std::string ExchangedTensor(const std::string& host, size_t first, size_t end) const;
  // The launch that has the repeat and the index of a launch's loop.
  DraftLaunch& HeadOf(DraftLaunch& launch);

  // draft_symbols.cc: variables of the device that the host fills.
  void Symbols();
  void AddSymbol(const SourceSymbol& symbol);
  // Why no [[symbol]] can fill it; empty: one can.
  std::string WhyNoSymbol(const SourceSymbol& symbol) const;
  bool IsWritten(const SourceSymbol& symbol) const;
  void SetSymbolShape(const SourceSymbol& symbol, int64_t width, DraftTensor& tensor);

  // draft_tensors.cc: pointers.
  void Tensors();
  // What a launch passes for a pointer parameter, or a field of a struct, by its key; null: nothing is known.
  static const CppExpression* GivenPointer(const PlannedKernel& planned, const std::string& key, size_t index);
  // Pointers of one host function into the same memory at different places, which an argument can't say.
  void NoteOverlaps();
  // Integers that index another tensor stay within it.
  void SetRanges();
  // d_x is x.
  static std::string ShortName(const std::string& host);
  static std::vector<std::pair<std::string, size_t>> PointersOf(const SourceFunction& kernel);
  static const SourceType& TypeOfPointer(const SourceFunction& kernel, const std::string& key);
  void AddTensor(TensorUse& use);
  void SetRole(const TensorUse& use, DraftTensor& tensor);
  void SetShape(const TensorUse& use, int64_t width, DraftTensor& tensor);
  // From the indices, at those values of the geometry's variables at which it is largest.
  std::optional<std::vector<std::string>> IndexedShape(const PlannedKernel& planned, const DraftLaunch& launch,
                                                       const std::vector<CppExpression>& indices,
                                                       IndexedExtents* by_data) const;
  // An extent at those values of its variables that make it largest; "?": it is not made of sizes and variables.
  std::string LargestOver(const std::string& extent, const std::set<std::string>& names) const;
  // Extents that are made of sizes alone: a shape may not depend on variables.
  std::vector<std::string> SizesOnly(const std::vector<std::string>& extents) const;
  std::optional<std::vector<std::string>> AllocatedShape(const HostAllocation& made, const PlannedKernel& planned);

  // draft_arguments.cc: what a launch passes.
  void Arguments(PlannedKernel& planned, DraftLaunch& launch);
  std::string Argument(const SourceParameter& parameter, const CppExpression* given, PlannedKernel& planned,
                       DraftLaunch& launch);
  std::string Scalar(const SourceParameter& parameter, const CppExpression* given, PlannedKernel& planned,
                     const std::optional<ElementType>& type, const std::string& size);
  std::string Struct(const SourceParameter& parameter, const CppExpression* given, PlannedKernel& planned);

  const SourceModel& model_;
  std::vector<HostLaunch> launches_;
  std::set<std::string_view> words_;  // of the source, its directives included
  std::vector<PlannedKernel> planned_;
  Draft draft_;
  std::optional<DraftVariables> variables_;
  std::set<std::string> names_ = {"SM_COUNT", "MAX_REGISTERS", "FAST_MATH"};
  std::map<std::string, std::string> size_of_;  // by the host's name for it
  std::vector<Indexed> indexed_;                // integer parameters of the planned kernels, and what they index
};

}  // namespace pawl

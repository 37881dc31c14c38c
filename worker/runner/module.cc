#include "worker/runner/module.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "worker/build/cubin.h"
#include "worker/build/plan_arguments.h"

namespace pawl {
namespace {

constexpr int64_t kPortableCluster = 8;  // blocks that every GPU with clusters allows
constexpr size_t kLargeGlobal = size_t{1} << 20;
constexpr uint64_t kSmallConstants = 16 << 10;

int64_t BlocksIn(const v1::Dim3& extent) { return int64_t{extent.x()} * extent.y() * extent.z(); }

std::string ExtentText(const v1::Dim3& extent) { return absl::StrCat(extent.x(), "x", extent.y(), "x", extent.z()); }

std::string LaunchText(const v1::PlanLaunch& launch) {
  std::string text =
      absl::StrCat("LaunchKernel of ", launch.entry(), ", grid ", ExtentText(launch.grid()), ", block ",
                   ExtentText(launch.block()), ", ", launch.shared_bytes(), " bytes of dynamic shared memory");
  if (launch.cooperative()) absl::StrAppend(&text, ", cooperative");
  if (launch.has_cluster()) {
    absl::StrAppend(&text, ", clusters of ", ExtentText(launch.cluster()),
                    " blocks, which must divide the grid and need compute capability 9.0");
  }
  return text;
}

CUresult QueueLaunch(CUfunction function, const v1::PlanLaunch& launch, CUstream stream, void** arguments) {
  const v1::Dim3 &grid = launch.grid(), &block = launch.block();
  if (!launch.cooperative() && !launch.has_cluster()) {
    return Cuda().LaunchKernel(function, grid.x(), grid.y(), grid.z(), block.x(), block.y(), block.z(),
                               launch.shared_bytes(), stream, arguments, nullptr);
  }
  CudaLaunchAttributeValue attributes[2] = {};
  CudaLaunchConfig config = {};
  config.grid_x = grid.x(), config.grid_y = grid.y(), config.grid_z = grid.z();
  config.block_x = block.x(), config.block_y = block.y(), config.block_z = block.z();
  config.shared_bytes = launch.shared_bytes();
  config.stream = stream;
  config.attributes = attributes;
  if (launch.cooperative()) {
    CudaLaunchAttributeValue& attribute = attributes[config.attribute_count++];
    attribute.id = kLaunchCooperative;
    attribute.value.cooperative = 1;
  }
  if (launch.has_cluster()) {
    CudaLaunchAttributeValue& attribute = attributes[config.attribute_count++];
    attribute.id = kLaunchClusterDimension;
    attribute.value.cluster = {static_cast<unsigned>(launch.cluster().x()), static_cast<unsigned>(launch.cluster().y()),
                               static_cast<unsigned>(launch.cluster().z())};
  }
  return Cuda().LaunchKernelEx(&config, function, arguments, nullptr);
}

// The values of a launch's arguments, at stable addresses for the driver.
class Arguments {
 public:
  // `exchanged`: its tensors' names are, between its repetitions.
  Arguments(const v1::PlanLaunch& launch, bool exchanged) : launch_(launch), values_(launch.arguments_size()) {
    const auto counts = [](const v1::PlanArgument& argument) {
      const auto& fields = argument.fields().fields();
      return argument.has_index() ||
             std::any_of(fields.begin(), fields.end(), [](const v1::PlanArgument& field) { return field.has_index(); });
    };
    changes_ = exchanged || std::any_of(launch.arguments().begin(), launch.arguments().end(), counts);
  }

  absl::Status Set(const std::vector<CUdeviceptr>& tensors, const StructTable& structs, int32_t index) {
    if (index > 0 && !changes_) return absl::OkStatus();
    pointers_.clear();
    for (int i = 0; i < launch_.arguments_size(); ++i) {
      const v1::PlanArgument& argument = launch_.arguments(i);
      if (!argument.has_fields()) {
        values_[i] = ArgumentContent(argument, tensors, index);
      } else {
        values_[i] = StructContent(argument.fields(), tensors, index);
        if (argument.fields().in_memory()) {
          const absl::StatusOr<CUdeviceptr> address = structs.Find(values_[i]);
          if (!address.ok()) return address.status();
          values_[i].assign(reinterpret_cast<const char*>(&*address), sizeof(*address));
        }
      }
      pointers_.push_back(values_[i].data());
    }
    return absl::OkStatus();
  }

  void** pointers() { return pointers_.data(); }

 private:
  const v1::PlanLaunch& launch_;
  bool changes_ = false;  // from one repetition to the next
  std::vector<std::string> values_;
  std::vector<void*> pointers_;
};

}  // namespace

Module::~Module() {
  if (module_ != nullptr) Cuda().ModuleUnload(module_);
}

absl::Status Module::Load(const std::string& cubin) {
  PAWL_CUDA(ModuleLoadData(&module_, cubin.data()));
  cubin_ = cubin;
  return absl::OkStatus();
}

int64_t Module::bytes() const { return LoadedBytes(cubin_); }

absl::StatusOr<CUfunction> Module::Function(const std::string& entry) {
  if (auto found = functions_.find(entry); found != functions_.end()) return found->second;
  CUfunction function;
  if (CUresult result = Cuda().ModuleGetFunction(&function, module_, entry.c_str())) {
    return CudaStatus(result, absl::StrCat("ModuleGetFunction(", entry, ")").c_str());
  }
  functions_[entry] = function;
  return function;
}

absl::StatusOr<int> Module::LocalBytes(const Launches& launches) {
  int most = 0;
  for (const v1::PlanLaunch& launch : launches) {
    absl::StatusOr<CUfunction> function = Function(SymbolOf(launch));
    if (!function.ok()) return function.status();
    int local = 0;
    PAWL_CUDA(FuncGetAttribute(&local, kFunctionLocalBytes, *function));
    most = std::max(most, local);
  }
  return most;
}

absl::StatusOr<v1::ResourceUse> Module::Resources(const v1::PlanLaunch& launch) {
  absl::StatusOr<CUfunction> function = Function(SymbolOf(launch));
  if (!function.ok()) return function.status();
  int registers, static_shared, local, max_threads, blocks = 0;
  PAWL_CUDA(FuncGetAttribute(&registers, kFunctionRegisters, *function));
  PAWL_CUDA(FuncGetAttribute(&static_shared, kFunctionSharedBytes, *function));
  PAWL_CUDA(FuncGetAttribute(&local, kFunctionLocalBytes, *function));
  PAWL_CUDA(FuncGetAttribute(&max_threads, kFunctionMaxThreads, *function));
  const int threads = launch.block().x() * launch.block().y() * launch.block().z();
  if (launch.shared_bytes() > 0) {
    PAWL_CUDA(FuncSetAttribute(*function, kFunctionMaxDynamicShared, launch.shared_bytes()));
    dynamic_shared_[launch.entry()] = launch.shared_bytes();
  }
  PAWL_CUDA(OccupancyMaxActiveBlocks(&blocks, *function, threads, launch.shared_bytes()));
  v1::ResourceUse use;
  use.set_entry(launch.entry());
  use.set_registers(registers);
  use.set_static_shared_bytes(static_shared);
  use.set_local_bytes(local);
  use.set_max_threads(max_threads);
  use.set_blocks_per_sm(blocks);
  return use;
}

absl::StatusOr<CUfunction> Module::Prepare(const v1::PlanLaunch& launch) {
  absl::StatusOr<CUfunction> function = Function(SymbolOf(launch));
  if (!function.ok()) return function;
  if (launch.shared_bytes() > dynamic_shared_[launch.entry()]) {
    PAWL_CUDA(FuncSetAttribute(*function, kFunctionMaxDynamicShared, launch.shared_bytes()));
    dynamic_shared_[launch.entry()] = launch.shared_bytes();
  }
  if (launch.has_cluster() && BlocksIn(launch.cluster()) > kPortableCluster) {
    PAWL_CUDA(FuncSetAttribute(*function, kFunctionNonPortableClusters, 1));
  }
  return function;
}

absl::Status Module::Launch(const Launches& launches, const std::vector<CUdeviceptr>& tensors,
                            const StructTable& structs, CUstream stream, const Around& around) {
  std::vector<CUdeviceptr> named = tensors;  // exchanged as launches say
  const bool exchanged = std::any_of(launches.begin(), launches.end(),
                                     [](const v1::PlanLaunch& launch) { return launch.swap_size() == 2; });
  struct Prepared {
    CUfunction function;
    std::unique_ptr<Arguments> arguments;
  };
  std::map<int, Prepared> prepared;
  return VisitInOrder(launches, [&](int i, int32_t index) -> absl::Status {
    const v1::PlanLaunch& launch = launches[i];
    if (index == 0) {
      const absl::StatusOr<CUfunction> function = Prepare(launch);
      if (!function.ok()) return function.status();
      prepared[i] = {*function, std::make_unique<Arguments>(launch, exchanged)};
    }
    Prepared& ready = prepared[i];
    PAWL_RETURN_IF_ERROR(ready.arguments->Set(named, structs, index));
    if (around) PAWL_RETURN_IF_ERROR(around(i, index, true));
    if (CUresult result = QueueLaunch(ready.function, launch, stream, ready.arguments->pointers())) {
      return CudaStatus(result, LaunchText(launch).c_str());
    }
    if (around) PAWL_RETURN_IF_ERROR(around(i, index, false));
    if (launch.swap_size() == 2) std::swap(named[launch.swap(0)], named[launch.swap(1)]);
    return absl::OkStatus();
  });
}

absl::StatusOr<Module::Global*> Module::FindSymbol(const v1::PlanSymbol& symbol, const v1::PlanTensor& tensor) {
  auto [known, added] = symbols_.try_emplace(symbol.name());
  if (added) {
    const absl::StatusOr<std::vector<GlobalVariable>> variables = GlobalVariables(cubin_);
    if (!variables.ok()) return variables.status();
    const GlobalVariable* variable = FindVariable(*variables, symbol.name());
    if (variable == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("the cubin has no variable ", symbol.name()));
    }
    Global& global = known->second;
    PAWL_CUDA(ModuleGetGlobal(&global.address, &global.bytes, module_, variable->name.c_str()));
    PAWL_RETURN_IF_ERROR(FindGlobals());
    LeaveOut(global);
  }
  if (known->second.bytes == static_cast<size_t>(TensorBytes(tensor))) return &known->second;
  return absl::InvalidArgumentError(absl::StrCat("the variable ", symbol.name(), " has ", known->second.bytes,
                                                 " bytes, the tensor ", tensor.name(), " ", TensorBytes(tensor)));
}

absl::Status Module::FillSymbols(const v1::Plan& plan, const std::vector<CUdeviceptr>& tensors, CUstream stream) {
  for (const v1::PlanSymbol& symbol : plan.symbols()) {
    const absl::StatusOr<Global*> global = FindSymbol(symbol, plan.tensors(symbol.tensor()));
    if (!global.ok()) return global.status();
    PAWL_CUDA(MemcpyDtoDAsync((*global)->address, tensors[symbol.tensor()], (*global)->bytes, stream));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Module::ChangedSymbol(const v1::Plan& plan, const std::vector<CUdeviceptr>& tensors) {
  for (const v1::PlanSymbol& symbol : plan.symbols()) {
    const absl::StatusOr<Global*> global = FindSymbol(symbol, plan.tensors(symbol.tensor()));
    if (!global.ok()) return global.status();
    std::string found((*global)->bytes, '\0'), expected((*global)->bytes, '\0');
    PAWL_CUDA(MemcpyDtoH(found.data(), (*global)->address, found.size()));
    PAWL_CUDA(MemcpyDtoH(expected.data(), tensors[symbol.tensor()], expected.size()));
    if (found != expected) return symbol.name();
  }
  return std::string();
}

// Of the variables of one section. One that the driver does not find by its name has no address.
struct Module::Section {
  std::vector<std::pair<const GlobalVariable*, Global>> found;
  uint64_t unfound_bytes = 0;
  bool zero = false;

  // Where the section begins, if all that was found lies where the cubin says.
  std::optional<CUdeviceptr> Base() const {
    const CUdeviceptr base = found[0].second.address - found[0].first->offset;
    const bool together = std::all_of(found.begin(), found.end(), [&](const auto& each) {
      const auto& [variable, global] = each;
      return global.address - variable->offset == base && variable->offset + global.bytes <= variable->section_bytes;
    });
    return together ? std::optional(base) : std::nullopt;
  }

  // From where to where nothing of it was found.
  std::vector<std::pair<uint64_t, uint64_t>> Gaps(uint64_t bytes) const {
    std::map<uint64_t, uint64_t> taken;  // where to, by where from
    for (const auto& [variable, global] : found) taken[variable->offset] = variable->offset + global.bytes;
    taken[bytes] = bytes;
    std::vector<std::pair<uint64_t, uint64_t>> gaps;
    uint64_t end = 0;
    for (const auto& [from, to] : taken) {
      if (from > end) gaps.emplace_back(end, from);
      end = std::max(end, to);
    }
    return gaps;
  }
};

absl::Status Module::FindGlobals() {
  if (knows_globals_) return absl::OkStatus();
  knows_globals_ = true;
  const absl::StatusOr<std::vector<GlobalVariable>> variables = GlobalVariables(cubin_);
  if (!variables.ok()) return absl::OkStatus();
  std::map<int, Section> sections;
  for (const GlobalVariable& variable : *variables) {
    Section& section = sections[variable.section];
    section.zero = variable.zero;
    Global global;
    if (Cuda().ModuleGetGlobal(&global.address, &global.bytes, module_, variable.name.c_str()) == 0) {
      section.found.emplace_back(&variable, global);
    } else {
      section.unfound_bytes += variable.bytes;
    }
  }
  for (const auto& [number, section] : sections) PAWL_RETURN_IF_ERROR(AddGlobals(section));
  return absl::OkStatus();
}

absl::Status Module::AddGlobals(const Section& section) {
  const std::optional<CUdeviceptr> base = section.found.empty() ? std::nullopt : section.Base();
  const uint64_t bytes = section.found.empty() ? 0 : section.found[0].first->section_bytes;
  const std::vector<std::pair<uint64_t, uint64_t>> gaps = section.Gaps(bytes);
  // The gaps between variables as well: what a call leaves there would stay. Where the driver's memory ends earlier
  // than the section, the last byte can't be read.
  char last = 0;
  if (base && !gaps.empty() && Cuda().MemcpyDtoH(&last, *base + bytes - 1, 1) == 0) {
    for (const auto& [begin, end] : gaps) {
      // Earlier code may have lain here.
      if (section.zero) PAWL_CUDA(MemsetD8Async(*base + begin, 0, end - begin, nullptr));
    }
    PAWL_CUDA(CtxSynchronize());
    if (bytes <= kLargeGlobal) return AddGlobal({.address = *base, .bytes = bytes}, section.zero);
    for (const auto& [begin, end] : gaps) {
      PAWL_RETURN_IF_ERROR(AddGlobal({.address = *base + begin, .bytes = end - begin}, section.zero));
    }
  } else {
    // Texts of the compiler's own are small and written by nobody.
    hidden_ |= section.unfound_bytes > (section.zero ? 0 : kSmallConstants);
  }
  for (const auto& [variable, global] : section.found) PAWL_RETURN_IF_ERROR(AddGlobal(global, variable->zero));
  return absl::OkStatus();
}

absl::Status Module::AddGlobal(Global global, bool zero) {
  if (!zero) {
    global.content.resize(global.bytes);
    PAWL_CUDA(MemcpyDtoH(global.content.data(), global.address, global.bytes));
  }
  globals_.push_back(std::move(global));
  return absl::OkStatus();
}

void Module::LeaveOut(const Global& symbol) {
  std::vector<Global> rest;
  for (Global& global : globals_) {
    if (symbol.address >= global.address + global.bytes || symbol.address + symbol.bytes <= global.address) {
      rest.push_back(std::move(global));
      continue;
    }
    const auto part = [&](size_t from, size_t to) {
      if (from >= to) return;
      rest.push_back({.address = global.address + from, .bytes = to - from});
      if (!global.content.empty()) rest.back().content = global.content.substr(from, to - from);
    };
    part(0, symbol.address - std::min(symbol.address, global.address));
    part(std::min<size_t>(global.bytes, symbol.address + symbol.bytes - global.address), global.bytes);
  }
  globals_ = std::move(rest);
}

absl::StatusOr<bool> Module::GlobalsChanged() {
  PAWL_RETURN_IF_ERROR(FindGlobals());
  if (hidden_) return true;
  for (const Global& global : globals_) {
    if (global.bytes > kLargeGlobal) return true;  // looking would take longer than what is timed
    std::string content(global.bytes, '\0');
    PAWL_CUDA(MemcpyDtoH(content.data(), global.address, global.bytes));
    if (global.content.empty() ? content.find_first_not_of('\0') != std::string::npos : content != global.content) {
      return true;
    }
  }
  return false;
}

absl::StatusOr<bool> Module::HasHiddenGlobals() {
  PAWL_RETURN_IF_ERROR(FindGlobals());
  return hidden_;
}

absl::Status Module::ResetGlobals(CUstream stream) {
  PAWL_RETURN_IF_ERROR(FindGlobals());
  for (const Global& global : globals_) {
    if (global.content.empty()) {
      PAWL_CUDA(MemsetD8Async(global.address, 0, global.bytes, stream));
    } else {
      PAWL_RETURN_IF_ERROR(CopyToGpu(global.address, global.content.data(), global.bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace pawl

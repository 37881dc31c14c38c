#include "worker/build/cubin.h"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/build/entry_markers.h"

namespace pawl {
namespace {

constexpr uint64_t kGpuPageBytes = uint64_t{2} << 20;  // of GPU memory
constexpr unsigned char kCudaEntry = 0x10;             // in st_other
constexpr Elf64_Half kMachineCuda = 190;
constexpr std::string_view kUserConstants = ".nv.constant3";  // the section of __constant__ variables
constexpr std::string_view kShared = ".nv.shared";            // those of shared memory, which debug builds name

absl::Status BadCubin(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("not a cubin: ", what));
}

// Copies, because nothing says that the bytes are aligned.
template <typename T>
bool ReadAt(std::string_view bytes, uint64_t offset, T* value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(value, bytes.data() + offset, sizeof(T));
  return true;
}

bool Slice(std::string_view bytes, const Elf64_Shdr& section, std::string_view* slice) {
  if (section.sh_offset > bytes.size() || bytes.size() - section.sh_offset < section.sh_size) return false;
  *slice = bytes.substr(section.sh_offset, section.sh_size);
  return true;
}

// The section table of a cubin that is one.
absl::StatusOr<std::vector<Elf64_Shdr>> Sections(std::string_view cubin, Elf64_Ehdr* header) {
  if (!ReadAt(cubin, 0, header)) return BadCubin(absl::StrCat(cubin.size(), " bytes are too few"));
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) {
    return BadCubin("no 64-bit ELF file");
  }
  if (header->e_machine != kMachineCuda) return BadCubin(absl::StrCat("ELF machine ", header->e_machine));
  if (header->e_shentsize != sizeof(Elf64_Shdr)) return BadCubin("its section table is damaged");
  std::vector<Elf64_Shdr> sections(header->e_shnum);
  for (size_t i = 0; i < sections.size(); ++i) {
    if (!ReadAt(cubin, header->e_shoff + i * sizeof(Elf64_Shdr), &sections[i])) return BadCubin("it is cut off");
  }
  return sections;
}

std::string NameAt(std::string_view strings, uint64_t offset) {
  if (offset >= strings.size()) return "";
  const std::string_view rest = strings.substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

// What an .nv.info.ENTRY section says, as `cuobjdump -elf` prints it: a list of (format, attribute, value), where the
// value is two bytes, or, in format 4, two bytes of length and so many bytes.
constexpr unsigned char kFormatSized = 4;
constexpr unsigned char kParameterInfo = 0x17;   // EIATTR_KPARAM_INFO: index, ordinal, offset, packed size
constexpr unsigned char kParameterBytes = 0x19;  // EIATTR_CBANK_PARAM_SIZE: of all parameters
struct ParameterInfo {
  uint32_t index;
  uint16_t ordinal;
  uint16_t offset;
  uint32_t packed;  // the size in bits 18 to 31
};

// Nothing where the section does not say it in this way.
std::optional<std::vector<int>> ParametersIn(std::string_view info) {
  std::map<int, std::pair<int, int>> parameters;  // offset and size, by ordinal
  int total = 0;
  for (size_t at = 0; at < info.size();) {
    unsigned char format, attribute;
    uint16_t value;
    if (!ReadAt(info, at, &format) || !ReadAt(info, at + 1, &attribute) || !ReadAt(info, at + 2, &value)) {
      return std::nullopt;
    }
    at += 4;
    if (attribute == kParameterBytes && format != kFormatSized) total = value;
    if (format != kFormatSized) continue;
    ParameterInfo parameter;
    if (attribute == kParameterInfo) {
      if (value != sizeof(parameter) || !ReadAt(info, at, &parameter)) return std::nullopt;
      parameters[parameter.ordinal] = {parameter.offset, static_cast<int>(parameter.packed >> 18)};
    }
    at += value;
  }
  std::vector<int> sizes;
  int end = 0;
  for (const auto& [ordinal, place] : parameters) {
    if (ordinal != static_cast<int>(sizes.size()) || place.first < end) return std::nullopt;
    sizes.push_back(place.second);
    end = place.first + place.second;
  }
  // Both accounts must agree, or the layout is not understood.
  return end == total ? std::optional(sizes) : std::nullopt;
}

// Calls `each` with every symbol that is wanted, and its name.
absl::Status VisitSymbols(std::string_view cubin, const std::vector<Elf64_Shdr>& sections,
                          const std::function<bool(const Elf64_Sym&)>& wanted,
                          const std::function<void(const Elf64_Sym&, std::string)>& each) {
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    std::string_view symbols, strings;
    if (section.sh_link >= sections.size() || !Slice(cubin, section, &symbols) ||
        !Slice(cubin, sections[section.sh_link], &strings)) {
      return BadCubin("its symbol table is damaged");
    }
    Elf64_Sym symbol;
    for (size_t at = 0; ReadAt(symbols, at, &symbol); at += sizeof(symbol)) {
      if (!wanted(symbol)) continue;
      if (symbol.st_name >= strings.size()) return BadCubin("a symbol's name is damaged");
      each(symbol, NameAt(strings, symbol.st_name));
    }
  }
  return absl::OkStatus();
}

// Of the symbols that are wanted, sorted.
absl::StatusOr<std::vector<std::string>> SymbolNames(std::string_view cubin,
                                                     const std::function<bool(const Elf64_Sym&)>& wanted) {
  Elf64_Ehdr header;
  const absl::StatusOr<std::vector<Elf64_Shdr>> sections = Sections(cubin, &header);
  if (!sections.ok()) return sections.status();
  std::vector<std::string> names;
  const absl::Status status = VisitSymbols(
      cubin, *sections, wanted, [&](const Elf64_Sym&, std::string name) { names.push_back(std::move(name)); });
  if (!status.ok()) return status;
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> EntrySymbols(std::string_view cubin) {
  return SymbolNames(cubin, [](const Elf64_Sym& symbol) {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && (symbol.st_other & kCudaEntry) != 0;
  });
}

absl::StatusOr<std::vector<GlobalVariable>> GlobalVariables(std::string_view cubin) {
  Elf64_Ehdr header;
  const absl::StatusOr<std::vector<Elf64_Shdr>> sections = Sections(cubin, &header);
  if (!sections.ok()) return sections.status();
  std::string_view section_names;
  if (header.e_shstrndx < sections->size()) Slice(cubin, (*sections)[header.e_shstrndx], &section_names);
  std::vector<GlobalVariable> variables;
  const auto wanted = [](const Elf64_Sym& symbol) {
    return ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx != SHN_UNDEF && symbol.st_size > 0;
  };
  const auto section_name = [&](const Elf64_Sym& symbol) {
    return symbol.st_shndx < sections->size() ? NameAt(section_names, (*sections)[symbol.st_shndx].sh_name) : "";
  };
  const auto add = [&](const Elf64_Sym& symbol, std::string name) {
    if (section_name(symbol).starts_with(kShared)) return;
    GlobalVariable& variable = variables.emplace_back();
    variable.name = std::move(name);
    variable.bytes = symbol.st_size;
    if (symbol.st_shndx >= sections->size()) return;
    const Elf64_Shdr& section = (*sections)[symbol.st_shndx];
    variable.zero = variable.blank = section.sh_type == SHT_NOBITS;
    variable.align = std::max<uint64_t>(1, section.sh_addralign);
    variable.section = symbol.st_shndx;
    variable.offset = symbol.st_value;
    variable.section_bytes = section.sh_size;
    variable.constant = section_name(symbol).starts_with(kUserConstants);
    std::string_view stored;
    if (variable.zero || !Slice(cubin, section, &stored) || symbol.st_value > stored.size()) return;
    stored = stored.substr(symbol.st_value, symbol.st_size);
    variable.blank = stored.find_first_not_of('\0') == stored.npos;
  };
  if (absl::Status status = VisitSymbols(cubin, *sections, wanted, add); !status.ok()) return status;
  std::sort(variables.begin(), variables.end(),
            [](const GlobalVariable& a, const GlobalVariable& b) { return a.name < b.name; });
  return variables;
}

int64_t LoadedBytes(std::string_view cubin) {
  uint64_t bytes = cubin.size();
  const absl::StatusOr<std::vector<GlobalVariable>> variables = GlobalVariables(cubin);
  if (!variables.ok()) return static_cast<int64_t>(bytes);
  for (const GlobalVariable& variable : *variables) {
    if (!variable.zero) continue;  // it lies in the file
    // The section's size has 32 bits only. Each large variable has pages of its own.
    const uint64_t step = std::max(variable.align, variable.bytes >= kGpuPageBytes / 2 ? kGpuPageBytes : 1);
    const uint64_t steps = variable.bytes / step + (variable.bytes % step > 0);
    const uint64_t room = INT64_MAX - bytes;
    bytes += steps > room / step ? room : steps * step;
  }
  return static_cast<int64_t>(bytes);
}

const GlobalVariable* FindVariable(const std::vector<GlobalVariable>& variables, const std::string& name) {
  const std::string_view wanted = std::string_view(name).substr(name.starts_with("::") ? 2 : 0);
  const GlobalVariable* found = nullptr;
  for (const GlobalVariable& variable : variables) {
    if (variable.name == wanted) return &variable;
    const std::string demangled = Demangled(variable.name);
    std::string_view plain = demangled;
    // What one file has for itself lies in a namespace without a name, or in one that nvcc makes up.
    for (size_t at; plain.starts_with("(anonymous namespace)::") || plain.starts_with("_INTERNAL_");) {
      if ((at = plain.find("::")) == plain.npos) break;
      plain = plain.substr(at + 2);
    }
    if (plain == wanted) found = &variable;
  }
  return found;
}

absl::StatusOr<std::vector<std::string>> DriverFunctions(std::string_view cubin) {
  return SymbolNames(cubin, [](const Elf64_Sym& symbol) {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx == SHN_UNDEF;
  });
}

absl::StatusOr<std::vector<std::string>> EntryNames(std::string_view cubin) {
  absl::StatusOr<std::vector<std::string>> names = EntrySymbols(cubin);
  if (names.ok()) std::erase_if(*names, IsMarker);
  return names;
}

absl::StatusOr<int> CubinArchitecture(std::string_view cubin) {
  Elf64_Ehdr header;
  const absl::StatusOr<std::vector<Elf64_Shdr>> sections = Sections(cubin, &header);
  if (!sections.ok()) return sections.status();
  // CUDA 13 has the number one byte further up.
  return static_cast<int>(header.e_flags >> (header.e_ident[EI_ABIVERSION] >= 8 ? 8 : 0) & 0xff);
}

std::string Demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // "c" is also how C++ writes char
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return symbol;
  const std::string demangled = text;
  std::free(text);
  return demangled;
}

absl::StatusOr<std::map<std::string, std::vector<int>>> EntryParameters(std::string_view cubin) {
  Elf64_Ehdr header;
  const absl::StatusOr<std::vector<Elf64_Shdr>> sections = Sections(cubin, &header);
  if (!sections.ok()) return sections.status();
  std::string_view names;
  if (header.e_shstrndx >= sections->size() || !Slice(cubin, (*sections)[header.e_shstrndx], &names)) {
    return BadCubin("its section names are damaged");
  }
  constexpr std::string_view kPrefix = ".nv.info.";
  std::map<std::string, std::vector<int>> parameters;
  for (const Elf64_Shdr& section : *sections) {
    const std::string name = NameAt(names, section.sh_name);
    std::string_view info;
    if (!name.starts_with(kPrefix) || !Slice(cubin, section, &info)) continue;
    if (std::optional<std::vector<int>> sizes = ParametersIn(info)) {
      parameters[name.substr(kPrefix.size())] = *std::move(sizes);
    }
  }
  return parameters;
}

}  // namespace pawl

#include "worker/build/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

constexpr unsigned char kCudaEntry = 0x10;  // in st_other
constexpr Elf64_Half kMachineCuda = 190;

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

}  // namespace

absl::StatusOr<std::vector<std::string>> EntryNames(std::string_view cubin) {
  Elf64_Ehdr header;
  if (!ReadAt(cubin, 0, &header)) return BadCubin(absl::StrCat(cubin.size(), " bytes are too few"));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
    return BadCubin("no 64-bit ELF file");
  }
  if (header.e_machine != kMachineCuda) return BadCubin(absl::StrCat("ELF machine ", header.e_machine));
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return BadCubin("its section table is damaged");

  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (size_t i = 0; i < sections.size(); ++i) {
    if (!ReadAt(cubin, header.e_shoff + i * sizeof(Elf64_Shdr), &sections[i])) return BadCubin("it is cut off");
  }
  std::vector<std::string> names;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    std::string_view symbols, strings;
    if (section.sh_link >= sections.size() || !Slice(cubin, section, &symbols) ||
        !Slice(cubin, sections[section.sh_link], &strings)) {
      return BadCubin("its symbol table is damaged");
    }
    Elf64_Sym symbol;
    for (size_t at = 0; ReadAt(symbols, at, &symbol); at += sizeof(symbol)) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || (symbol.st_other & kCudaEntry) == 0) continue;
      if (symbol.st_name >= strings.size()) return BadCubin("a symbol's name is damaged");
      const std::string_view rest = strings.substr(symbol.st_name);
      names.emplace_back(rest.substr(0, rest.find('\0')));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace pawl

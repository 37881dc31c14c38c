// libnvrtc.so for a machine without a GPU: NVRTC's own cubin, and behind it the same code compiled for the host by g++.
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/host_gpu/image.h"

// What stands in front of device code; the sandbox that this runs in does not show the checkout.
asm(R"(
.section .rodata
.globl host_gpu_device_code, host_gpu_device_code_end, host_gpu_image_header, host_gpu_image_header_end
.hidden host_gpu_device_code, host_gpu_device_code_end, host_gpu_image_header, host_gpu_image_header_end
host_gpu_device_code: .incbin ")" HOST_GPU_FOLDER R"(/device_code.h"
host_gpu_device_code_end:
host_gpu_image_header: .incbin ")" HOST_GPU_FOLDER R"(/image.h"
host_gpu_image_header_end:
.text
)");
extern "C" const char host_gpu_device_code[], host_gpu_device_code_end[], host_gpu_image_header[],
    host_gpu_image_header_end[];

namespace {

constexpr int kSuccess = 0, kInternalError = 11, kCompilation = 6;

struct Real {
  int (*version)(int*, int*) = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*destroy)(void**) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*cubin_size)(void*, size_t*) = nullptr;
  int (*cubin)(void*, char*) = nullptr;
  int (*log_size)(void*, size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*add_name)(void*, const char*) = nullptr;
  int (*lowered_name)(void*, const char*, const char**) = nullptr;
};

std::vector<std::string> Found(const char* pattern) {
  glob_t found = {};
  std::vector<std::string> paths;
  if (glob(pattern, 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

// Where toolkits are; a sandbox shows the one that is in use.
void* LoadToolkits(std::string* folder) {
  for (const char* pattern :
       {"/usr/local/cuda/lib64/libnvrtc.so*", "/usr/local/cuda/lib/libnvrtc.so*",
        "/usr/local/cuda-*/lib64/libnvrtc.so*", "/usr/local/cuda-*/lib/libnvrtc.so*", "/opt/cuda/lib64/libnvrtc.so*"}) {
    for (const std::string& path : Found(pattern)) {
      *folder = path.substr(0, path.rfind('/'));
      if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
  }
  return nullptr;
}

// Null: there is none.
const Real* RealNvrtc() {
  static Real real;
  static const bool loaded = [] {
    std::string folder;
    void* const library = LoadToolkits(&folder);
    if (library == nullptr) return false;
    // It opens them by their bare name.
    for (const std::string& builtins : Found((folder + "/libnvrtc-builtins.so*").c_str())) {
      dlopen(builtins.c_str(), RTLD_NOW | RTLD_GLOBAL);
    }
    const auto find = [&](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    };
    find("nvrtcVersion", &real.version);
    find("nvrtcGetErrorString", &real.error_string);
    find("nvrtcCreateProgram", &real.create);
    find("nvrtcDestroyProgram", &real.destroy);
    find("nvrtcCompileProgram", &real.compile);
    find("nvrtcGetCUBINSize", &real.cubin_size);
    find("nvrtcGetCUBIN", &real.cubin);
    find("nvrtcGetProgramLogSize", &real.log_size);
    find("nvrtcGetProgramLog", &real.log);
    find("nvrtcAddNameExpression", &real.add_name);
    find("nvrtcGetLoweredName", &real.lowered_name);
    return real.lowered_name != nullptr;
  }();
  return loaded ? &real : nullptr;
}

// Names of a cubin's kernels and global variables.
struct Symbols {
  std::vector<std::string> entries, variables;
};

Symbols SymbolsIn(const std::string& cubin) {
  Symbols symbols;
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(cubin.data());
  const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(cubin.data() + header->e_shoff);
  const char* const section_names = cubin.data() + sections[header->e_shstrndx].sh_offset;
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* const names = cubin.data() + sections[sections[i].sh_link].sh_offset;
    const auto* const symbol = reinterpret_cast<const Elf64_Sym*>(cubin.data() + sections[i].sh_offset);
    for (size_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); ++k) {
      const std::string name = names + symbol[k].st_name;
      const int type = ELF64_ST_TYPE(symbol[k].st_info);
      if (type == STT_FUNC && (symbol[k].st_other & 0x10) != 0) symbols.entries.push_back(name);
      if (type != STT_OBJECT || symbol[k].st_shndx == SHN_UNDEF || symbol[k].st_shndx >= header->e_shnum) continue;
      const std::string_view section = section_names + sections[symbol[k].st_shndx].sh_name;
      if (section.find("shared") == section.npos) symbols.variables.push_back(name);
    }
  }
  return symbols;
}

// As C++ writes it; of a function without its type. Empty: it can't be named.
std::string PlainName(const std::string& symbol) {
  std::string text = symbol;
  if (symbol.rfind("_Z", 0) == 0) {
    int status = 0;
    char* const demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
    if (demangled == nullptr) return "";
    text = demangled;
    free(demangled);
  }
  for (size_t at; (at = text.find("(anonymous namespace)::")) != text.npos;) text.erase(at, 23);
  if (text.rfind("void ", 0) == 0) text.erase(0, 5);
  if (text.rfind("_INTERNAL_", 0) == 0) text.erase(0, text.find("::") + 2);  // of this file alone
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '<') - (text[i] == '>');
    if (text[i] != '(' || depth > 0) continue;
    if (text.find("::", text.find(')', i)) != text.npos) return "";  // of a function's own
    return text.substr(0, i);
  }
  return text.find('$') == text.npos ? text : "";
}

// What g++ would not take.
std::string ForHost(std::string source) {
  static const std::regex kDynamic(
      R"(extern\s+__shared__\s+((?:__align__\s*\([^)]*\)|alignas\s*\([^)]*\))\s*)?([\w:<>\s]+?)\s+(\w+)\s*\[\s*\]\s*;)");
  static const std::regex kTimer(
      R"re(asm\s+volatile\s*\(\s*"mov\.u64 %0, %%?globaltimer;"\s*:\s*"=l"\s*\((\w+)\)(?:\s*::\s*"memory")?\s*\)\s*;)re");
  source = std::regex_replace(source, kDynamic, "$2* const $3 = reinterpret_cast<$2*>(host_gpu_dynamic_shared);");
  return std::regex_replace(source, kTimer, "$1 = host_gpu_nanoseconds();");
}

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// False: the log says why.
bool Run(const std::vector<std::string>& words, std::string* log, const std::string& log_file) {
  const pid_t child = fork();
  if (child == 0) {
    if (freopen(log_file.c_str(), "w", stderr) == nullptr) _exit(127);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  *log = ReadFile(log_file);
  return status == 0;
}

struct Program {
  void* real = nullptr;
  std::string source, name, log, cubin;
  std::vector<std::string> expressions;

  bool CompileForHost(int count, const char* const* options) {
    char folder[] = "/tmp/host_gpu_XXXXXX";
    if (mkdtemp(folder) == nullptr) return false;
    const std::string base = folder, library = base + "/image.so";
    std::ofstream(base + "/device_code.h").write(host_gpu_device_code, host_gpu_device_code_end - host_gpu_device_code);
    std::ofstream(base + "/image.h").write(host_gpu_image_header, host_gpu_image_header_end - host_gpu_image_header);
    std::ofstream(base + "/code.cc") << "#include \"device_code.h\"\n#line 1 \"" << name << "\"\n"
                                     << ForHost(source) << Table();
    std::vector<std::string> words = {
        "g++",           "-x", "c++", "-shared", "-fPIC", "-w", "-fpermissive", "-fno-gnu-unique", "-ffp-contract=off",
        "-Wl,-Bsymbolic"};
    // Misaligned access traps. Of others than Pawl's own kernels, which cost nothing, each basic block counts.
    words.insert(words.end(), {"-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"});
    if (name == "support.cu") {
      words.push_back("-O2");
    } else {
      words.insert(words.end(), {"-O1", "-fsanitize-coverage=trace-pc"});
    }
    for (int i = 0; i < count; ++i) {
      const std::string option = options[i];
      if (option.rfind("-D", 0) == 0 || option.rfind("-I", 0) == 0) words.push_back(option);
    }
    words.insert(words.end(), {"-std=gnu++20", "-o", library, base + "/code.cc"});
    const bool fine = Run(words, &log, base + "/log");
    if (fine) {
      const std::string bytes = ReadFile(library);
      host_gpu::Trailer trailer = {};
      memcpy(trailer.magic, host_gpu::kMagic, sizeof(trailer.magic));
      trailer.bytes = bytes.size();
      cubin.resize((cubin.size() + 15) / 16 * 16);
      cubin.append(reinterpret_cast<const char*>(&trailer), sizeof(trailer)).append(bytes);
    }
    for (const char* file : {"/code.cc", "/device_code.h", "/image.h", "/image.so", "/log"})
      unlink((base + file).c_str());
    rmdir(folder);
    return fine;
  }

  // Kernels and variables by their names in the cubin.
  std::string Table() const {
    std::map<std::string, std::string> lowered;
    for (const std::string& expression : expressions) {
      const char* symbol = nullptr;
      if (RealNvrtc()->lowered_name(real, expression.c_str(), &symbol) == kSuccess) lowered[symbol] = expression;
    }
    const Symbols symbols = SymbolsIn(cubin);
    std::string entries, variables;
    for (const std::string& symbol : symbols.entries) {
      const std::string plain = lowered.count(symbol) != 0 ? lowered[symbol] : PlainName(symbol);
      entries += "host_gpu::EntryOf<" + plain + ">::Named(\"" + symbol + "\"),\n";
    }
    for (const std::string& symbol : symbols.variables) {
      const std::string plain = PlainName(symbol);
      const auto begins = [&](const char* text) { return plain.rfind(text, 0) == 0; };
      if (plain.empty() || begins("__") || begins("cuda::") || begins("std::")) continue;  // of NVRTC's headers
      variables += "host_gpu::VariableOf(\"" + symbol + "\", " + plain + "),\n";
    }
    return "\nextern \"C\" const host_gpu::Image* host_gpu_image() {\n"
           "static thread_local volatile char own = 0;\nown = 1;\n"  // __shared__ variables have a place from now on
           "static const host_gpu::Entry entries[] = {\n" +
           entries +
           "{nullptr, nullptr, nullptr, 0}};\n"
           "static const host_gpu::Variable variables[] = {\n" +
           variables +
           "{nullptr, nullptr, 0}};\n"
           "static const host_gpu::Image image = {entries, sizeof(entries) / sizeof(entries[0]) - 1, variables,\n"
           "sizeof(variables) / sizeof(variables[0]) - 1};\nreturn &image;\n}\n";
  }
};

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  if (RealNvrtc() != nullptr) return RealNvrtc()->version(major, minor);
  return kInternalError;
}

const char* nvrtcGetErrorString(int result) {
  return RealNvrtc() != nullptr ? RealNvrtc()->error_string(result) : "there is no NVRTC";
}

int nvrtcCreateProgram(Program** program, const char* source, const char* name, int headers, const char* const* texts,
                       const char* const* names) {
  if (RealNvrtc() == nullptr) return kInternalError;
  *program = new Program;
  (*program)->source = source;
  (*program)->name = name != nullptr ? name : "";
  return RealNvrtc()->create(&(*program)->real, source, name, headers, texts, names);
}

int nvrtcDestroyProgram(Program** program) {
  const int result = RealNvrtc()->destroy(&(*program)->real);
  delete *program;
  *program = nullptr;
  return result;
}

int nvrtcAddNameExpression(Program* program, const char* expression) {
  program->expressions.push_back(expression);
  return RealNvrtc()->add_name(program->real, expression);
}

int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  // Without one it asks the driver for a GPU's.
  static const char* const kSome[] = {"-arch=sm_90"};
  if (count == 0) options = kSome, count = 1;
  const int result = RealNvrtc()->compile(program->real, count, options);
  size_t size = 0;
  if (RealNvrtc()->log_size(program->real, &size) == kSuccess && size > 1) {
    program->log.resize(size);
    RealNvrtc()->log(program->real, program->log.data());
    program->log.pop_back();
  }
  if (result != kSuccess) return result;
  if (RealNvrtc()->cubin_size(program->real, &size) != kSuccess || size == 0) return result;
  program->cubin.resize(size);
  RealNvrtc()->cubin(program->real, program->cubin.data());
  return program->CompileForHost(count, options) ? kSuccess : kCompilation;
}

int nvrtcGetCUBINSize(Program* program, size_t* size) {
  *size = program->cubin.size();
  return kSuccess;
}

int nvrtcGetCUBIN(Program* program, char* cubin) {
  memcpy(cubin, program->cubin.data(), program->cubin.size());
  return kSuccess;
}

int nvrtcGetProgramLogSize(Program* program, size_t* size) {
  *size = program->log.size() + 1;
  return kSuccess;
}

int nvrtcGetProgramLog(Program* program, char* log) {
  memcpy(log, program->log.c_str(), program->log.size() + 1);
  return kSuccess;
}

int nvrtcGetLoweredName(Program* program, const char* expression, const char** name) {
  return RealNvrtc()->lowered_name(program->real, expression, name);
}
}

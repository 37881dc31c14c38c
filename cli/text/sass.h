#pragma once

#include <map>
#include <string>

namespace pawl {

// How often each opcode stands in a kernel's machine code, without its modifiers: LDG of LDG.E.128.
using InstructionMix = std::map<std::string, int>;

// Of each function in what `cuobjdump -sass` or `nvdisasm` printed. Padding (NOP) is left out.
std::map<std::string, InstructionMix> InstructionMixes(const std::string& sass);

}  // namespace pawl

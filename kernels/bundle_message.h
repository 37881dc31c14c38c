#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

// A letter, then letters, digits, _ and -, at most 64.
bool IsBundleName(const std::string& name);

// Letters, digits, _ and -, at most 64.
bool IsHeaderLibrary(const std::string& name);

// An output of floats has no tolerance of its own; also where there is no output.
bool NeedsTolerance(const v1::Bundle& bundle);

// Scratch of the launches. Static scratch is the setup's, and so the contract's.
bool IsOwnScratch(const v1::Tensor& tensor);

// The bundle has nothing of the implementation: no device code, launches, variables, constraints, scratch, options or
// symbols. The first proposal that passes validation is the start of its campaign.
bool IsContractAlone(const v1::Bundle& bundle);
inline constexpr char kContractAlone[] =
    "a contract alone, without source and [[launch]]: the first proposal that passes validation is the start of its "
    "campaign";
// What is left of a bundle without its implementation.
v1::Bundle ContractPartOf(v1::Bundle bundle);
// The same for bundles with the same contract, whatever their implementations are.
std::string ContractHash(const v1::Bundle& bundle);
// The files of the contract, by their paths: problem.py, its data, reference, setup, baseline.
std::map<std::string, std::string> ContractFiles(const v1::Bundle& bundle);
std::set<std::string> ContractPaths(const v1::Bundle& bundle);

// What a file of a bundle may not have in it, also after an edit; empty: nothing of that.
std::string SourceTextProblem(const std::string& text);

// The same message gives the same bytes, maps included: the hash of a bundle's blob is of these.
std::string BundleBytes(const v1::Bundle& bundle);

// What is wrong with a bundle that came as a message: from a stranger, not from the bundle reader. Empty: the space can
// be listed, and plans of the start variant can be made at every size. Nothing in it makes this crash or take long.
std::vector<std::string> BundleProblems(const v1::Bundle& bundle);

}  // namespace pawl

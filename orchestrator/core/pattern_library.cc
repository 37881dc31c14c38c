#include "orchestrator/core/pattern_library.h"

#include <iterator>
#include <set>
#include <utility>

#include "base/hash/hash.h"
#include "orchestrator/core/errors.h"
#include "profiles/pattern_file.h"

namespace pawl {
namespace {

constexpr int kTriedEnough = 3;
constexpr size_t kMostInSnapshot = 200;  // of about 60 bytes: they are in every campaign's first event
constexpr size_t kMostOfResource = 50;   // where variables of any resource may come
constexpr size_t kMostListed = 10000;

void Append(const std::vector<v1::Pattern>& more, std::vector<v1::Pattern>* patterns) {
  patterns->insert(patterns->end(), more.begin(), more.end());
}

// Of patterns in any order.
template <typename Patterns>
std::string HashOf(const Patterns& patterns) {
  std::set<std::string> each;
  for (const v1::Pattern& pattern : patterns) each.insert(Sha256(pattern.SerializeAsString()));
  std::string all;
  for (const std::string& hash : each) all += hash;
  return Sha256(all);
}

}  // namespace

PatternLibrary::PatternLibrary(const std::vector<v1::PatternFile>& shipped) : shipped_(shipped) { UseFiles(); }

absl::Status PatternLibrary::Load(Store& store) {
  const absl::StatusOr<std::vector<v1::Pattern>> lessons = store.Lessons();
  if (!lessons.ok()) return lessons.status();
  absl::StatusOr<std::vector<v1::PatternFile>> files = store.PatternFiles();
  if (!files.ok()) return files.status();
  absl::StatusOr<std::vector<std::string>> exports = store.PatternExports();
  if (!exports.ok()) return exports.status();
  handed_out_ = {exports->begin(), exports->end()};
  own_ = PatternTable();
  for (const v1::Pattern& lesson : *lessons) own_.Add(lesson);
  imported_.clear();
  for (v1::PatternFile& file : *files) imported_[file.source()] = std::move(file);
  UseFiles();
  return absl::OkStatus();
}

void PatternLibrary::UseFiles() {
  std::vector<v1::Pattern> all;
  const auto use = [&](const v1::PatternFile& file) {
    Append(ByBundle({file.patterns().begin(), file.patterns().end()}), &all);
  };
  for (const v1::PatternFile& file : shipped_) {
    if (!imported_.contains(file.source())) use(file);
  }
  for (const auto& [source, file] : imported_) use(file);
  of_files_.clear();
  for (v1::Pattern& pattern : Merged(all)) {
    if (pattern.bundle().empty()) continue;  // in those over all
    of_files_[pattern.bundle()].push_back(pattern);
  }
  of_files_[""] = OverAll(all);
}

void PatternLibrary::Learn(const std::optional<v1::Pattern>& lesson, Writes* writes) {
  if (!lesson) return;
  own_.Add(*lesson);
  writes->lessons.push_back(*lesson);
}

void PatternLibrary::Judged(const v1::Iteration& iteration, const std::string& bundle, const std::string& architecture,
                            Writes* writes) {
  Learn(LessonOf(iteration, bundle, architecture), writes);
}

void PatternLibrary::TakenBack(const v1::Iteration& kept, const std::string& bundle, const std::string& architecture,
                               Writes* writes) {
  Learn(pawl::TakenBack(kept, bundle, architecture), writes);
}

absl::StatusOr<v1::ImportPatternsResponse> PatternLibrary::Import(const v1::ImportPatternsRequest& request,
                                                                  Writes* writes) {
  if (absl::Status status = CheckPatternFile(request.file(), "the file"); !status.ok()) {
    return BadField("file", std::string(status.message()));
  }
  if (IsOwn(request.file())) return v1::ImportPatternsResponse();
  imported_[request.file().source()] = request.file();
  UseFiles();
  writes->pattern_files.push_back(request.file());
  v1::ImportPatternsResponse response;
  response.set_imported(request.file().patterns_size());
  return response;
}

bool PatternLibrary::IsOwn(const v1::PatternFile& file) const {
  if (file.patterns().empty()) return false;
  const std::string hash = HashOf(file.patterns());
  return handed_out_.contains(hash) || hash == HashOf(own_.List()) || hash == HashOf(own_.Of(""));
}

void PatternLibrary::HandOut(const v1::ListPatternsResponse& own, Writes* writes) {
  if (own.patterns().empty()) return;
  const std::string hash = HashOf(own.patterns());
  if (handed_out_.insert(hash).second) writes->pattern_exports.push_back(hash);
}

std::vector<v1::Pattern> PatternLibrary::Of(const std::string& bundle) const {
  std::vector<v1::Pattern> patterns = own_.Of(bundle);
  if (const auto files = of_files_.find(bundle); files != of_files_.end()) Append(files->second, &patterns);
  return Merged(patterns);
}

google::protobuf::RepeatedPtrField<v1::Pattern> PatternLibrary::Snapshot(const v1::Bundle& bundle) const {
  std::set<v1::Resource> resources;
  for (const v1::Variable& variable : bundle.variables()) {
    for (const v1::Effect& effect : variable.affects()) resources.insert(effect.resource());
  }
  std::vector<v1::Pattern> patterns = Of("");
  if (!bundle.name().empty()) Append(Of(bundle.name()), &patterns);
  const bool any = bundle.variables().empty();
  std::erase_if(patterns, [&](const v1::Pattern& pattern) {
    return pattern.tried() < kTriedEnough || (!any && !resources.contains(pattern.effect().resource()));
  });
  SortByTried(&patterns);
  if (any) {
    std::map<v1::Resource, size_t> counts;
    std::erase_if(patterns,
                  [&](const v1::Pattern& pattern) { return ++counts[pattern.effect().resource()] > kMostOfResource; });
  } else if (patterns.size() > kMostInSnapshot) {
    patterns.resize(kMostInSnapshot);
  }
  return {std::make_move_iterator(patterns.begin()), std::make_move_iterator(patterns.end())};
}

v1::ListPatternsResponse PatternLibrary::List(const v1::ListPatternsRequest& request) const {
  std::vector<v1::Pattern> patterns;
  if (request.own()) {
    patterns = request.by_bundle() ? own_.List() : own_.Of("");
  } else if (request.by_bundle()) {
    patterns = own_.List();
    for (const auto& [bundle, of_files] : of_files_) Append(of_files, &patterns);
    patterns = Merged(patterns);
  } else {
    patterns = Of("");
  }
  std::erase_if(patterns, [&](const v1::Pattern& pattern) {
    return (!request.architecture().empty() && pattern.architecture() != request.architecture()) ||
           (!request.rule().empty() && pattern.rule() != request.rule());
  });
  SortByTried(&patterns);
  if (patterns.size() > kMostListed) patterns.resize(kMostListed);
  v1::ListPatternsResponse response;
  *response.mutable_patterns() = {std::make_move_iterator(patterns.begin()), std::make_move_iterator(patterns.end())};
  return response;
}

}  // namespace pawl

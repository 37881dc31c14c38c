#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store.h"
#include "google/protobuf/repeated_field.h"
#include "orchestrator/engine/search/patterns.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign_service.pb.h"
#include "pawl/v1/pattern.pb.h"

namespace pawl {

// What the orchestrator knows of patterns: what the campaigns of its database taught, files that were imported, and
// those that ship with Pawl. Like everything the orchestrator holds it is ahead of the store until the Writes that it
// adds to are committed: after a commit that failed it must be loaded again.
//
//   library.Load(store)                                          at the start, and after a failed commit
//   *submitted.mutable_patterns() = library.Snapshot(bundle)     of a campaign that is submitted
//   library.Judged(iteration, bundle, architecture, &writes)     in the transaction that judges the iteration
//   library.TakenBack(kept, bundle, architecture, &writes)       in the one that takes a kept iteration back
//   library.Import(request, &writes)                             ImportPatterns
//   library.List(request)                                        ListPatterns
//   library.HandOut(response, &writes)                           ... of its own patterns
//
// Not thread-safe: it is the orchestrator's, under its lock.
class PatternLibrary {
 public:
  // `shipped`: ShippedPatterns(). A file that is imported with the same source takes the place of a shipped one.
  explicit PatternLibrary(const std::vector<v1::PatternFile>& shipped);

  absl::Status Load(Store& store);

  // `bundle` is its name, `architecture` ArchitectureOf the campaign's GPU. An iteration that teaches nothing changes
  // nothing.
  void Judged(const v1::Iteration& iteration, const std::string& bundle, const std::string& architecture,
              Writes* writes);

  // The same for one that is still marked as kept; one that is not changes nothing.
  void TakenBack(const v1::Iteration& kept, const std::string& bundle, const std::string& architecture, Writes* writes);

  // INVALID_ARGUMENT: another version, an unknown resource, or figures that can't be. What this library has handed out,
  // then or now, counts already: of that nothing is imported.
  absl::StatusOr<v1::ImportPatternsResponse> Import(const v1::ImportPatternsRequest& request, Writes* writes);

  // What a campaign of this bundle starts with: patterns that were tried often enough to say something, of resources
  // that its variables affect, over all bundles and of its own; the most tried where there are too many. Of a bundle
  // without variables, those of every resource: proposals bring variables.
  google::protobuf::RepeatedPtrField<v1::Pattern> Snapshot(const v1::Bundle& bundle) const;

  // The most tried first, at most 10,000.
  v1::ListPatternsResponse List(const v1::ListPatternsRequest& request) const;

  // Remembers a list of its own patterns that somebody is given: it may come back as a file. Adds nothing to `writes`
  // where it did before.
  void HandOut(const v1::ListPatternsResponse& own, Writes* writes);

 private:
  std::vector<v1::Pattern> Of(const std::string& bundle) const;
  void Learn(const std::optional<v1::Pattern>& lesson, Writes* writes);
  void UseFiles();
  bool IsOwn(const v1::PatternFile& file) const;

  std::vector<v1::PatternFile> shipped_;
  std::map<std::string, v1::PatternFile> imported_;           // by source
  std::map<std::string, std::vector<v1::Pattern>> of_files_;  // all files together, by bundle; empty: over all
  PatternTable own_;
  std::set<std::string> handed_out_;  // hashes
};

}  // namespace pawl

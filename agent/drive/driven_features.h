#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/drive/ledger.h"
#include "agent/drive/transcript.h"
#include "agent/tools/pawl_features.h"

namespace pawl {

// What an agent that `pawl agent` started gets of Pawl: its campaign and no other, under its own name, within the
// limits of the ledger, which must outlive it. Every call of a tool is written to a transcript, a line each; of long
// arguments only the beginning.
class DrivenFeatures final : public McpFeatures {
 public:
  // `calls`: the file of the transcript.
  DrivenFeatures(std::shared_ptr<Campaigns> campaigns, const PawlFeatures::Options& options, AgentLedger& ledger,
                 const std::filesystem::path& calls);

  std::string name() const override { return pawl_.name(); }
  std::string version() const override { return pawl_.version(); }
  std::string instructions() const override { return pawl_.instructions(); }

  const Json& tools() const override { return tools_; }  // those of a campaign
  McpToolResult CallTool(const std::string& name, const Json& arguments, const McpCall& call) const override;
  bool TakesLong(const std::string& tool) const override { return pawl_.TakesLong(tool); }

  const Json& resource_templates() const override { return pawl_.resource_templates(); }
  absl::StatusOr<McpCached> ListResources(const std::string& cursor) const override {
    return pawl_.ListResources(cursor);
  }
  absl::StatusOr<McpCached> ReadResource(const std::string& uri) const override { return pawl_.ReadResource(uri); }

  const Json& prompts() const override { return pawl_.prompts(); }
  absl::StatusOr<Json> GetPrompt(const std::string& name, const Json& arguments) const override {
    return pawl_.GetPrompt(name, arguments);
  }
  std::vector<std::string> Complete(const std::string& argument, const std::string& value) const override {
    return pawl_.Complete(argument, value);
  }

 private:
  McpToolResult Propose(const Json& arguments, const McpCall& call) const;
  void Write(const std::string& tool, const Json& arguments, const McpToolResult& result) const;

  const PawlFeatures pawl_;
  const std::string author_;
  AgentLedger& ledger_;
  const Json tools_;
  mutable absl::Mutex mutex_;
  mutable Transcript calls_ ABSL_GUARDED_BY(mutex_);
};

// What the prompt `optimise` does not say: who it is, and what its folder holds.
std::string DrivenPrompt(const std::string& author, int agents);

}  // namespace pawl

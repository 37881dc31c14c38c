#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/handoff/hand_off.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

struct WinnerFile {
  std::string name;
  std::string text;
  bool executable = false;
};

// What became of one form of a winner: "verified on NVIDIA H200, 2026-11-16" or "not verified: ...".
struct FormState {
  std::string form;  // program, extension, cubin
  std::string text;
};

// Blobs of a winner that the messages about it do not have.
struct WinnerBlobs {
  std::string implementation;  // all files, and of kernel.toml what edits changed (kernels/read/implementation.h)
  std::string cubin;           // empty: not available
};

// What `pawl best --output` writes, made for the best variant; of a campaign with a portfolio, for a variant of that.
// `path` leads from the start to it.
absl::StatusOr<HandOff> HandOffOf(const v1::BestVariant& best, const v1::Campaign& campaign, const WinnerBlobs& blobs,
                                  const std::vector<v1::Iteration>& path);

// All files of the folder: the hand-off, its patch, the measurements, and a page that says what there is. The best
// variant's bundle here has its implementation. `path` leads from the start to the best.
std::vector<WinnerFile> WinnerFiles(const v1::BestVariant& best, const v1::Campaign& campaign, const HandOff& hand_off,
                                    const std::vector<FormState>& forms, const std::vector<v1::Iteration>& path);

// Beside the folders of a portfolio's variants: what picks one of them by size, and a page.
std::vector<WinnerFile> PortfolioFiles(const v1::Bundle& bundle, const v1::Campaign& campaign);

// AlreadyExists: there is something in the folder.
absl::Status CheckEmpty(const std::string& folder);
// Makes the folder where it is missing. AlreadyExists: one of the files is there; nothing was written.
absl::Status WriteWinner(const std::vector<WinnerFile>& files, const std::string& folder);

}  // namespace pawl

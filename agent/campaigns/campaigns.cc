#include "agent/campaigns/campaigns.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace pawl {
namespace {

constexpr char kErrorDetail[] = "type.googleapis.com/pawl.v1.ErrorDetail";

}  // namespace

absl::Status WithErrorDetail(absl::Status status, const v1::ErrorDetail& detail) {
  status.SetPayload(kErrorDetail, absl::Cord(detail.SerializeAsString()));
  return status;
}

v1::ErrorDetail ErrorDetailOf(const absl::Status& status) {
  v1::ErrorDetail detail;
  const absl::optional<absl::Cord> payload = status.GetPayload(kErrorDetail);
  if (payload && !detail.ParseFromString(std::string(*payload))) detail.Clear();
  return detail;
}

std::string ErrorText(const absl::Status& status) {
  const v1::ErrorDetail detail = ErrorDetailOf(status);
  std::string text(status.message());
  if (text.empty()) text = absl::StrCat("failed: ", absl::StatusCodeToString(status.code()));
  for (const std::string& problem : detail.problems()) absl::StrAppend(&text, "\n", problem);
  if (!detail.fix().empty()) absl::StrAppend(&text, "\nfix: ", detail.fix());
  return text;
}

}  // namespace pawl

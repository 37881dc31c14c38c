#include "worker/runner/struct_table.h"

#include <algorithm>
#include <utility>

#include "worker/build/plan_arguments.h"

namespace pawl {
namespace {

constexpr size_t kStructAlign = 16;

bool PointsToStruct(const v1::PlanArgument& argument) { return argument.has_fields() && argument.fields().in_memory(); }

}  // namespace

void StructTable::Clear() {
  offsets_.clear();
  image_.clear();
}

void StructTable::Add(const v1::Plan& plan, const std::vector<CUdeviceptr>& tensors) {
  for (const auto* launches : {&plan.setup(), &plan.launches()}) {
    std::vector<CUdeviceptr> named = tensors;
    VisitInOrder(*launches, [&](int i, int32_t index) {
      const v1::PlanLaunch& launch = (*launches)[i];
      for (const v1::PlanArgument& argument : launch.arguments()) {
        if (!PointsToStruct(argument)) continue;
        const std::string content = StructContent(argument.fields(), named, index);
        if (!offsets_.try_emplace(content, image_.size()).second) continue;
        image_ += content;
        image_.resize((image_.size() + kStructAlign - 1) / kStructAlign * kStructAlign, '\0');
      }
      if (launch.swap_size() == 2) std::swap(named[launch.swap(0)], named[launch.swap(1)]);
      return absl::OkStatus();
    }).IgnoreError();
  }
}

absl::Status StructTable::Reserve() { return image_.empty() ? absl::OkStatus() : memory_.Reserve(image_.size()); }

absl::Status StructTable::Upload() const {
  if (image_.empty()) return absl::OkStatus();
  return CopyToGpu(memory_.address(), image_.data(), image_.size());
}

absl::StatusOr<bool> StructTable::Unchanged() const {
  if (image_.empty()) return true;
  std::string content(image_.size(), '\0');
  PAWL_CUDA(MemcpyDtoH(content.data(), memory_.address(), content.size()));
  return content == image_;
}

absl::StatusOr<CUdeviceptr> StructTable::Find(const std::string& content) const {
  const auto found = offsets_.find(content);
  if (found == offsets_.end()) return absl::InternalError("a struct in memory was not prepared for its launch");
  return memory_.address() + found->second;
}

}  // namespace pawl

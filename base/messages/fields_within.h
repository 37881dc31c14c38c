#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "google/protobuf/descriptor.h"

namespace pawl {

// Of each type of message: the fields that count, and messages with some in them at any depth, by number. Every call's
// message is looked at: asking each part for all its fields would take longer than reading it. Not thread-safe.
class FieldsWithin {
 public:
  using Counts = std::function<bool(const google::protobuf::FieldDescriptor&)>;
  explicit FieldsWithin(Counts counts) : counts_(std::move(counts)) {}

  const std::vector<const google::protobuf::FieldDescriptor*>& Of(const google::protobuf::Descriptor& type);

 private:
  const Counts counts_;
  std::unordered_map<const google::protobuf::Descriptor*, std::vector<const google::protobuf::FieldDescriptor*>> known_;
};

}  // namespace pawl

// The host's loops around launches: repeat, loop, index and swap (declared in drafting.h).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/draft/drafting.h"

namespace pawl {
namespace {

void NoteOuterLoop(const HostLoop& loop, DraftLaunch& launch) {
  if (loop.outer.empty()) return;
  launch.todos.push_back(
      absl::StrCat("the host's loop around it is itself in a loop, `", loop.outer, "`, which the draft leaves out"));
}

// x + t * n: the draft passes the same tensor in every round.
void NoteMovingPointers(const PlannedKernel& planned, DraftLaunch& launch) {
  const HostLoop& loop = *planned.launch->loop;
  const std::vector<SourceParameter>& parameters = planned.kernel->parameters;
  for (size_t i = 0; i < parameters.size() && i < planned.launch->arguments.size(); ++i) {
    const CppExpression& argument = planned.launch->arguments[i];
    const auto tensor = planned.tensors.find(parameters[i].name);
    if (loop.index.empty() || tensor == planned.tensors.end() || !Mentions(argument, loop.index)) continue;
    launch.todos.push_back(absl::StrCat("arguments: ", parameters[i].name, " is ", CppText(argument), " in round ",
                                        loop.index, ", and the draft passes ", tensor->second));
  }
}

}  // namespace

bool Drafting::HasIndex(const PlannedKernel& planned) {
  const HostLaunch& launch = *planned.launch;
  return std::any_of(launch.arguments.begin(), launch.arguments.end(), [&](const CppExpression& argument) {
    return RootOf(argument, launch.values) == launch.loop->index;
  });
}

void Drafting::Loop(const PlannedKernel& planned, DraftLaunch& launch) {
  if (!planned.launch->loop || planned.launch->loop->launches > 1) return;
  const HostLoop& loop = *planned.launch->loop;
  NoteOuterLoop(loop, launch);
  // Where nothing differs from one launch to the next, the loop is a benchmark's.
  if (loop.plain && planned.launch->swaps.empty() && !HasIndex(planned)) {
    launch.todos.push_back(
        absl::StrCat("the host repeats the launch, `", loop.text, "`; if that is no benchmark, add `repeat`"));
    return;
  }
  const bool plain = loop.plain && !(loop.shifted && HasIndex(planned));  // an index is from 0
  std::optional<std::string> count = plain ? HostText(loop.count, planned) : std::nullopt;
  if (!count) {
    launch.todos.push_back(absl::StrCat("it is launched in a loop that `repeat` can't say: ", loop.text));
    return;
  }
  launch.repeat = *count;
}

void Drafting::Loops() {
  const auto loop_of = [&](size_t i) -> const HostLoop* {
    const HostLaunch* launch = planned_[i].launch;
    return launch != nullptr && launch->loop ? &*launch->loop : nullptr;
  };
  for (size_t first = 0; first < planned_.size();) {
    size_t end = first + 1;
    if (const HostLoop* loop = loop_of(first); loop != nullptr) {
      if (loop->launches > 1) {
        while (end < planned_.size() && loop_of(end) != nullptr && loop_of(end)->launches > 1 &&
               loop_of(end)->begin == loop->begin && planned_[end].launch->host == planned_[first].launch->host) {
          ++end;
        }
        LoopOver(first, end);
      } else {
        Swap(first, end);
      }
      for (size_t i = first; i < end; ++i) NoteMovingPointers(planned_[i], draft_.launches[i]);
    }
    first = end;
  }
}

std::string Drafting::WhyNoLoop(size_t first, size_t end) const {
  const HostLaunch& head = *planned_[first].launch;
  for (const HostLaunch& launch : launches_) {
    if (launch.host != head.host ||
        std::find(launch.loops.begin(), launch.loops.end(), head.loop->begin) == launch.loops.end()) {
      continue;
    }
    if (launch.loop->begin != head.loop->begin) return "one of them has a loop of its own";
    bool drafted = false;
    for (size_t i = first; i < end; ++i)
      drafted = drafted || planned_[i].launch == &launch || Exclude(*planned_[i].launch, launch);
    if (!drafted) return absl::StrCat("it has not the one in line ", launch.line);
  }
  return "";
}

bool Drafting::IsCarried(size_t first, size_t end) const {
  for (size_t i = first; i < end; ++i) {
    for (const auto& [key, name] : planned_[i].tensors) {
      if (std::any_of(draft_.tensors.begin(), draft_.tensors.end(), [&, &used = name](const DraftTensor& tensor) {
            return tensor.name == used && tensor.role == "inout";
          })) {
        return true;
      }
    }
  }
  return false;
}

void Drafting::LoopOver(size_t first, size_t end) {
  const HostLoop& loop = *planned_[first].launch->loop;
  DraftLaunch& head = draft_.launches[first];
  if (const std::string why_not = WhyNoLoop(first, end); !why_not.empty()) {
    head.todos.push_back(absl::StrCat("the host repeats ", loop.launches, " launches together, `", loop.text,
                                      "`; the draft leaves the loop out: ", why_not));
    return;
  }
  const auto from = planned_.begin() + static_cast<std::ptrdiff_t>(first),
             to = planned_.begin() + static_cast<std::ptrdiff_t>(end);
  const bool differs = !planned_[first].launch->swaps.empty() || std::any_of(from, to, HasIndex);
  if (loop.plain && !differs && !IsCarried(first, end)) {
    head.todos.push_back(absl::StrCat("the host repeats ", loop.launches, " launches together, `", loop.text,
                                      "`, and no round changes what the next one reads: a benchmark's loop. If it is "
                                      "none, add `loop` and `repeat`"));
    return;
  }
  const bool plain = loop.plain && !(loop.shifted && std::any_of(from, to, HasIndex));  // an index is from 0
  const std::optional<std::string> count = plain ? HostText(loop.count, planned_[first]) : std::nullopt;
  if (!count) {
    head.todos.push_back(absl::StrCat("they are launched in a loop that `repeat` can't say: ", loop.text));
    return;
  }
  std::string name = loop.index;
  while (std::any_of(draft_.launches.begin(), draft_.launches.end(),
                     [&](const DraftLaunch& launch) { return launch.loop == name; })) {
    name += "_2";
  }
  for (size_t i = first; i < end; ++i) draft_.launches[i].loop = name;
  head.repeat = *count;
  head.todos.push_back(absl::StrCat("loop: `", loop.text, "`; a benchmark's loop needs none"));
  NoteOuterLoop(loop, head);
  Swap(first, end);
}

std::string Drafting::ExchangedTensor(const std::string& host, size_t first, size_t end) const {
  CppExpression name;
  name.kind = CppExpression::Kind::kName;
  name.text = host;
  const std::string held = HostTensor(name, planned_[first].launch->values);
  for (size_t which = first; which < end; ++which) {
    const PlannedKernel& planned = planned_[which];
    const std::vector<SourceParameter>& parameters = planned.kernel->parameters;
    for (size_t i = 0; i < parameters.size() && i < planned.launch->arguments.size(); ++i) {
      const auto tensor = planned.tensors.find(parameters[i].name);
      if (tensor != planned.tensors.end() && HostTensor(planned.launch->arguments[i], planned.launch->values) == held)
        return tensor->second;
    }
  }
  return "";
}

void Drafting::Swap(size_t first, size_t end) {
  DraftLaunch& head = draft_.launches[first];
  for (const auto& [a, b] : planned_[first].launch->swaps) {
    std::vector<DraftTensor*> exchanged;
    for (const std::string& name : {ExchangedTensor(a, first, end), ExchangedTensor(b, first, end)}) {
      for (DraftTensor& tensor : draft_.tensors) {
        if (tensor.name == name) exchanged.push_back(&tensor);
      }
    }
    if (exchanged.size() != 2 || exchanged[0] == exchanged[1]) continue;
    DraftTensor &one = *exchanged[0], &two = *exchanged[1];
    if (!head.swap.empty() || one.type != two.type) {
      head.todos.push_back(absl::StrCat("swap: the host also exchanges ", a, " and ", b, ", which `swap` can't say: ",
                                        one.type != two.type ? "their types differ" : "it takes one pair"));
      continue;
    }
    head.swap = {one.name, two.name};
    for (DraftTensor* tensor : exchanged) {
      tensor->role = "inout";
      tensor->todos.push_back("role: the launches exchange it with another; say which one is the result");
    }
    if (one.shape == two.shape) continue;
    DraftTensor& guessed = one.guessed ? one : two;
    const DraftTensor& known = one.guessed ? two : one;
    guessed.shape = known.shape;
    guessed.todos.push_back(absl::StrCat("shape: that of ", known.name, ", with which the launches exchange it"));
  }
}

DraftLaunch& Drafting::HeadOf(DraftLaunch& launch) {
  if (launch.loop.empty()) return launch;
  return *std::find_if(draft_.launches.begin(), draft_.launches.end(),
                       [&](const DraftLaunch& other) { return other.loop == launch.loop; });
}

}  // namespace pawl

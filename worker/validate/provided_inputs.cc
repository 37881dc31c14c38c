#include "worker/validate/provided_inputs.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "kernels/data_file.h"
#include "kernels/plan.h"
#include "worker/problem/problem_server.h"
#include "worker/validate/gpu_device.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

constexpr char kFreshPool[] = "fresh";
constexpr char kProbePool[] = "probe";
constexpr char kSeat[] = " seat", kFresh[] = " fresh";  // at the end of a pool's name
constexpr uint32_t kMinEntries = 2, kMaxEntries = 8;
constexpr double kPoolSeconds = 4;                 // of making a pool
constexpr int64_t kPoolBytes = int64_t{2} << 30;   // of a pool
constexpr int64_t kMostStaged = int64_t{3} << 30;  // of entries that lie in shared memory side by side
constexpr double kQuickSeconds = 1;                // a pool that takes less is made for every comparison

// The bundle's first size with everything checked, once a device.
absl::Status CheckProblemOnce(GpuDevice& device, const v1::Bundle& bundle) {
  const std::string identity = ProblemIdentity(bundle);
  if (device.pools().checked.contains(identity)) return absl::OkStatus();
  absl::StatusOr<v1::Plan> plan = MakeReferencePlan(bundle, bundle.sizes(0), device.gpu());
  if (!plan.ok()) return plan.status();
  EntryRequest request;
  request.pool = kProbePool;
  request.seed = SecretSeed();
  request.only = request.strict = true;
  const absl::StatusOr<StagedEntry> made = device.problem().Make(bundle, *plan, request);
  if (!made.ok()) return made.status();
  device.pools().checked.insert(identity);
  return absl::OkStatus();
}

absl::Status Provide(KernelProcess& process, const std::string& pool, uint32_t entry,
                     const std::vector<v1::ProvideRequest::Part>& parts) {
  v1::ProvideRequest request;
  request.set_pool(pool);
  request.set_entry(entry);
  request.mutable_parts()->Assign(parts.begin(), parts.end());
  absl::StatusOr<v1::RunnerReply> reply = process.Provide(request);
  if (!reply.ok()) return reply.status();
  if (!reply->has_failure()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the inputs that problem.py made could not be copied to the GPU: ", reply->failure().message()));
}

absl::Status Drop(GpuDevice& device, const std::string& pool) {
  if (pool.empty()) return absl::OkStatus();
  for (KernelProcess* process : {&device.runner(), &device.reference()}) {
    for (const std::string& name : {pool, ExpectedPool(pool)}) {
      v1::ProvideRequest request;
      request.set_pool(name);
      request.set_drop(true);
      const absl::StatusOr<v1::RunnerReply> reply = process->Provide(request);
      if (!reply.ok()) return reply.status();
    }
  }
  return absl::OkStatus();
}

// What lies in shared memory to the processes that lack it.
absl::Status ProvideStaged(GpuDevice& device, const StagedEntry& staged, const std::string& pool, uint32_t entry,
                           bool with_inputs) {
  absl::Status status;
  if (!device.runner().HasEntry(pool, entry)) status = Provide(device.runner(), pool, entry, staged.inputs);
  const std::string expected = ExpectedPool(pool);
  if (status.ok() && !device.reference().HasEntry(expected, entry)) {
    status = Provide(device.reference(), expected, entry, staged.expected);
  }
  if (status.ok() && with_inputs && !device.reference().HasEntry(pool, entry)) {
    status = Provide(device.reference(), pool, entry, staged.inputs);
  }
  return status;
}

uint64_t SeedOf(const std::string& key) {
  uint64_t seed = 0;
  memcpy(&seed, key.data(), std::min(sizeof(seed), key.size()));
  return seed;
}

bool HasAll(GpuDevice& device, const std::string& pool, uint32_t entry, bool with_inputs) {
  return device.runner().HasEntry(pool, entry) && device.reference().HasEntry(ExpectedPool(pool), entry) &&
         (!with_inputs || device.reference().HasEntry(pool, entry));
}

// Where the next entry of a pool is put while the processes take this one; 0: only after that.
int64_t OffsetBehind(const StagedEntry& staged) {
  return staged.end() + staged.bytes() <= kMostStaged ? staged.end() : 0;
}

// While the processes take one entry from shared memory, the next one is put behind it.
absl::Status HandOverPool(GpuDevice& device, const v1::Bundle& bundle, const TimedPool& timed) {
  std::vector<uint32_t> lacking;
  for (uint32_t entry = 0; entry < timed.entries; ++entry) {
    if (!HasAll(device, timed.pool, entry, /*with_inputs=*/false)) lacking.push_back(entry);
  }
  int64_t offset = 0;
  const absl::Cleanup nothing_goes_on = [&] { device.problem().DropAhead(); };
  for (size_t i = 0; i < lacking.size(); ++i) {
    const absl::StatusOr<StagedEntry> staged = device.problem().Stage(bundle, timed.pool, lacking[i], offset);
    if (!staged.ok()) return staged.status();
    offset = OffsetBehind(*staged);
    if (i + 1 < lacking.size() && offset > 0) {
      device.problem().StageAhead(bundle, timed.pool, lacking[i + 1], offset);
    }
    absl::Status provided = ProvideStaged(device, *staged, timed.pool, lacking[i], /*with_inputs=*/false);
    if (!provided.ok()) return provided;
  }
  return absl::OkStatus();
}

// The pool of timed calls at a size; its inputs follow from this name and their number.
std::string TimedPoolName(const v1::Bundle& bundle, const v1::Plan& plan) {
  std::string what = ProblemIdentity(bundle);
  std::map<std::string, int64_t> sizes(plan.sizes().begin(), plan.sizes().end());
  for (const auto& [name, value] : sizes) absl::StrAppend(&what, " ", name, "=", value);
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (tensor.role() == v1::TENSOR_ROLE_SCRATCH) continue;  // each variant has its own
    v1::PlanTensor filled = tensor;
    filled.clear_tolerance();
    filled.clear_align();
    absl::StrAppend(&what, " ", filled.SerializeAsString());
    const v1::DataFile* file = tensor.fill() == v1::FILL_FILE ? FindDataFile(bundle, tensor.file()) : nullptr;
    if (file != nullptr) absl::StrAppend(&what, " ", absl::HashOf(absl::string_view(file->data())));
  }
  return absl::StrCat("timed ", plan.size(), " ", Sha256(what).substr(0, 16));
}

uint64_t NumberOf(const std::string& hexadecimal) {
  return std::strtoull(hexadecimal.substr(0, 16).c_str(), nullptr, 16);
}

class PoolMaker {
 public:
  // `pool`: what the processes know them by; the inputs are those of `name` and `data`.
  PoolMaker(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan, std::string pool, std::string name,
            uint32_t data)
      : device_(device), bundle_(bundle), plan_(plan), pool_(std::move(pool)), name_(std::move(name)), data_(data) {}

  absl::StatusOr<TimedPool> Make() {
    if (absl::Status dropped = Drop(device_, pool_); !dropped.ok()) return dropped;
    uint32_t& entries = device_.pools().entries[name_];
    const bool known = entries > 0;
    TimedPool made = {pool_, known ? entries : kMinEntries, data_};
    device_.pools().made.erase(pool_);
    double seconds = 0;
    int64_t offset = 0;
    const absl::Cleanup nothing_goes_on = [&] { device_.problem().DropAhead(); };
    for (uint32_t entry = 0; entry < made.entries; ++entry) {
      absl::StatusOr<StagedEntry> staged = device_.problem().Make(bundle_, plan_, RequestFor(entry, offset));
      if (!staged.ok()) return staged.status();
      seconds += staged->make_seconds;
      if (entry == 0 && !known) made.entries = entries = EntriesFor(*staged);
      offset = OffsetBehind(*staged);
      // Made while the processes take this one from shared memory.
      if (entry + 1 < made.entries && offset > 0) {
        device_.problem().MakeAhead(bundle_, plan_, RequestFor(entry + 1, offset));
      }
      absl::Status provided = ProvideStaged(device_, *staged, pool_, entry, /*with_inputs=*/false);
      if (!provided.ok()) return provided;
    }
    made.slow = seconds > kQuickSeconds;
    device_.pools().made[pool_] = made;
    return made;
  }

 private:
  EntryRequest RequestFor(uint32_t entry, int64_t offset) const {
    EntryRequest request;
    request.pool = pool_;
    request.entry = entry;
    request.seed = NumberOf(KeyedHash(device_.pools().key, absl::StrCat(name_, " ", data_, " ", entry)));
    request.only = entry == 0;
    request.offset = offset;
    return request;
  }

  static uint32_t EntriesFor(const StagedEntry& first) {
    const double by_time = kPoolSeconds / std::max(first.make_seconds, 1e-3);
    const double by_bytes = static_cast<double>(kPoolBytes) / static_cast<double>(std::max<int64_t>(1, first.bytes()));
    const auto most =
        static_cast<uint32_t>(std::clamp(std::min(by_time, by_bytes), double{kMinEntries}, double{kMaxEntries}));
    return most == 5 || most == 7 ? most - 1 : most;  // each comes as often as the others in 72 replays
  }

  GpuDevice& device_;
  const v1::Bundle& bundle_;
  const v1::Plan& plan_;
  const std::string pool_, name_;
  const uint32_t data_;
};

// Room for inputs of this number: nobody asks for those of earlier comparisons again.
void ForgetOthers(GpuDevice& device, const v1::Bundle& bundle, uint32_t data) {
  std::erase_if(device.pools().made, [&](const auto& made) {
    const bool last = !absl::EndsWith(made.first, kFresh) && !absl::EndsWith(made.first, kSeat);
    if (last || made.second.data == data || made.second.data == SeatData(device.pools(), bundle)) return false;
    device.problem().Forget(bundle, made.first);
    return true;
  });
}

// The number that stands for this.
uint32_t NumberFor(ProvidedPools& pools, const std::string& what) {
  uint32_t& number = pools.numbers[what];
  if (number == 0) number = NewData(pools);
  return number;
}

// Of a number's lower half.
uint32_t UpperHalf(const ProvidedPools& pools, uint32_t lower) {
  return static_cast<uint32_t>(NumberOf(KeyedHash(pools.key, absl::StrCat("number ", lower)))) & 0xffff;
}

}  // namespace

std::string ExpectedPool(const std::string& pool) { return absl::StrCat(pool, " expected"); }

absl::StatusOr<v1::InputDraw> MakeInputs(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan,
                                         v1::InputDraw draw) {
  if (!HasProblem(bundle)) return draw;
  if (absl::Status checked = CheckProblemOnce(device, bundle); !checked.ok()) return checked;
  if (absl::Status dropped = Drop(device, kFreshPool); !dropped.ok()) return dropped;
  EntryRequest request;
  request.pool = kFreshPool;
  request.entry = device.pools().next_entry++;
  request.seed = SeedOf(draw.key());
  request.only = true;
  request.distribution = draw.distribution();
  request.magnitude = draw.magnitude();
  absl::StatusOr<StagedEntry> staged = device.problem().Make(bundle, plan, request);
  if (!staged.ok()) return staged.status();
  draw.set_pool(request.pool);
  draw.set_entry(request.entry);
  absl::Status provided = ProvideStaged(device, *staged, request.pool, request.entry, /*with_inputs=*/false);
  if (!provided.ok()) return provided;
  return draw;
}

absl::Status HandOver(GpuDevice& device, const v1::Bundle& bundle, const v1::InputDraw& draw, bool with_inputs) {
  if (!HasProblem(bundle) || HasAll(device, draw.pool(), draw.entry(), with_inputs)) return absl::OkStatus();
  const absl::StatusOr<StagedEntry> staged = device.problem().Stage(bundle, draw.pool(), draw.entry(), /*offset=*/0);
  if (!staged.ok()) return staged.status();
  return ProvideStaged(device, *staged, draw.pool(), draw.entry(), with_inputs);
}

uint32_t NewData(ProvidedPools& pools) {
  uint32_t number = 0;
  while (number == 0) {
    const uint32_t lower = pools.next_data++ & 0xffff;
    number = UpperHalf(pools, lower) << 16 | lower;
  }
  return number;
}

bool IsOwnData(const ProvidedPools& pools, uint32_t data) {
  return data != 0 && UpperHalf(pools, data & 0xffff) == data >> 16;
}

uint32_t SeatData(ProvidedPools& pools, const v1::Bundle& bundle) {
  return NumberFor(pools, absl::StrCat(kSeat, ProblemIdentity(bundle)));
}

void SeeSeatData(ProvidedPools& pools, const v1::Bundle& bundle, const std::string& module) {
  pools.seen[ProblemIdentity(bundle)] = module;
}

void RenewSeatData(ProvidedPools& pools, const v1::Bundle& bundle, const std::set<std::string>& modules) {
  const std::string problem = ProblemIdentity(bundle);
  const auto seen = pools.seen.find(problem);
  if (seen == pools.seen.end() || modules.contains(seen->second)) return;
  pools.seen.erase(seen);
  pools.numbers.erase(absl::StrCat(kSeat, problem));
}

absl::StatusOr<TimedPool> ProvideTimedPool(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan,
                                           uint32_t data) {
  if (!HasProblem(bundle)) return TimedPool();
  const std::string name = TimedPoolName(bundle, plan);
  const uint32_t known = NumberFor(device.pools(), ProblemIdentity(bundle));
  if (data == 0) data = known;
  std::string pool = name;
  if (data != known) absl::StrAppend(&pool, data == SeatData(device.pools(), bundle) ? kSeat : kFresh);
  if (device.pools().timed != pool) {
    if (absl::Status dropped = Drop(device, device.pools().timed); !dropped.ok()) return dropped;
    device.pools().timed = pool;
  }
  const auto made = device.pools().made.find(pool);
  if (made != device.pools().made.end() && made->second.data == data) {
    const TimedPool timed = made->second;
    const absl::Status status = HandOverPool(device, bundle, timed);
    if (status.ok()) return timed;
    if (!absl::IsNotFound(status)) return status;  // the process that had them has ended: they are made once more
  }
  ForgetOthers(device, bundle, data);
  return PoolMaker(device, bundle, plan, pool, name, data).Make();
}

bool IsQuickToMake(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan) {
  const auto made = device.pools().made.find(TimedPoolName(bundle, plan));
  return made != device.pools().made.end() && !made->second.slow;
}

}  // namespace pawl

#include "worker/runner/check.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"
#include "kernels/limits.h"
#include "kernels/plan.h"
#include "kernels/tolerance.h"
#include "worker/build/plan_arguments.h"
#include "worker/runner/placement.h"
#include "worker/validate/checked_call.h"
#include "worker/validate/output_pieces.h"

namespace pawl {
namespace {

// Scaled by 1 - 1/16 and 1 + 1/16: an eighth of a sum that is left out is twice that.
constexpr double kScaledBy = 1.0 / 16;
constexpr int64_t kFewCorrupted = 8;
// Of tensors that are placed once more: what reads outside does so at small sizes too.
constexpr uint64_t kMostElsewhere = uint64_t{1} << 30;

// Tries one output's tolerance on outputs that are wrong.
class SelfTest {
 public:
  SelfTest(GpuContext& gpu, const v1::Plan& plan, const v1::PlanTensor& tensor, CUdeviceptr expected, CUdeviceptr other,
           v1::CheckReply* reply)
      : gpu_(gpu), plan_(plan), tensor_(tensor), expected_(expected), other_(other), reply_(reply) {}

  // `initial` makes what a tensor that is changed in place held before the call: its key and number.
  absl::Status Run(const Arena& arena, CUdeviceptr base, const std::optional<Segment>& initial, const Key& key,
                   uint32_t call) {
    PAWL_CUDA(MemsetD8Async(other_, 0, TensorBytes(tensor_), gpu_.stream));
    PAWL_RETURN_IF_ERROR(Try(other_, "all zeros"));
    if (tensor_.elements() > 1) {
      PAWL_RETURN_IF_ERROR(gpu_.support.Rotate(expected_, other_, tensor_));
      PAWL_RETURN_IF_ERROR(Try(other_, "the right values in the wrong places"));
    }
    const int64_t columns = tensor_.shape_size() > 1 ? tensor_.shape(tensor_.shape_size() - 1) : 1;
    const int64_t rows = tensor_.elements() / columns;
    if (tensor_.elements() >= 8 * kFewCorrupted) {
      PAWL_RETURN_IF_ERROR(TryCorrupted(kDropTail, "zeros in the last eighth"));
    }
    if (rows > 1 && columns >= kFewCorrupted) {
      PAWL_RETURN_IF_ERROR(TryCorrupted(kZeroFirstRow, "zeros in the first row"));
      PAWL_RETURN_IF_ERROR(TryCorrupted(kZeroLastRow, "zeros in the last row"));
      PAWL_RETURN_IF_ERROR(TryCorrupted(kSwapRows, "the first row and the last exchanged"));
    }
    if (columns > 1 && rows >= kFewCorrupted) {
      PAWL_RETURN_IF_ERROR(TryCorrupted(kZeroColumn, "zeros in the last column"));
    }
    if (!ToleranceOf(plan_, tensor_).exact()) {
      PAWL_RETURN_IF_ERROR(TryCorrupted(kScale, "all values 1/16 too small", 1 - kScaledBy));
      PAWL_RETURN_IF_ERROR(TryCorrupted(kScale, "all values 1/16 too large", 1 + kScaledBy));
    }
    if (initial) {
      SegmentTable before;
      Segment elsewhere = *initial;
      elsewhere.address = other_;
      PAWL_RETURN_IF_ERROR(before.Set({elsewhere}));
      PAWL_RETURN_IF_ERROR(gpu_.support.Fill(before, key, call));
      PAWL_RETURN_IF_ERROR(Try(other_, "what it was before the call"));
    }
    for (int i = 0; i < plan_.tensors_size(); ++i) {
      const v1::PlanTensor& input = plan_.tensors(i);
      if (input.role() != v1::TENSOR_ROLE_INPUT || input.type() != tensor_.type() ||
          input.elements() != tensor_.elements())
        continue;
      PAWL_RETURN_IF_ERROR(Try(base + arena.Offset(i), absl::StrCat("the input ", input.name())));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status TryCorrupted(Corruption corruption, const std::string& what, double factor = 1) {
    PAWL_RETURN_IF_ERROR(gpu_.support.Corrupt(expected_, other_, tensor_, corruption, factor));
    return Try(other_, what);
  }

  absl::Status Try(CUdeviceptr out, const std::string& what) {
    const v1::Tolerance& tolerance = ToleranceOf(plan_, tensor_);
    absl::StatusOr<v1::OutputError> error =
        gpu_.support.Compare(out, expected_, tensor_, tolerance.exact() ? 0 : tolerance.absolute());
    if (!error.ok()) return error.status();
    if (!WithinTolerance(*error, tolerance)) return absl::OkStatus();
    // What is right by the type's own precision proves nothing: every shuffle of a softmax of one column is.
    const absl::StatusOr<uint64_t> differing =
        gpu_.support.Differing(out, expected_, tensor_, 4 * UnitRoundoff(tensor_.type()));
    if (!differing.ok()) return differing.status();
    if (*differing == 0) return absl::OkStatus();
    const std::string limits =
        tolerance.exact() ? ""
                          : absl::StrCat(" (absolute ", tolerance.absolute(), ", relative ", tolerance.relative(), ")");
    reply_->add_lenient(absl::StrCat(tensor_.name(), limits, ": ", what));
    return absl::OkStatus();
  }

  GpuContext& gpu_;
  const v1::Plan& plan_;
  const v1::PlanTensor& tensor_;
  const CUdeviceptr expected_, other_;
  v1::CheckReply* const reply_;
};

// What one request compares, draw after draw.
class OutputCheck {
 public:
  OutputCheck(GpuContext& gpu, const v1::CheckRequest& request, v1::RunnerReply* reply)
      : gpu_(gpu),
        request_(request),
        plan_(request.plan()),
        arena_(Arena::For(plan_)),
        slots_(OutputSlots(plan_)),
        piece_slots_(PieceSlots(plan_)),
        reply_(reply) {}

  absl::Status Run() {
    PAWL_RETURN_IF_ERROR(Prepare());
    PAWL_RETURN_IF_ERROR(FindOwnRms());
    for (int call = 0; call < request_.draws_size(); ++call) {
      PAWL_RETURN_IF_ERROR(Compute(request_.draws(call)));
      PAWL_RETURN_IF_ERROR(Compare(call));
    }
    if (!request_.self_test() || request_.draws().empty()) return absl::OkStatus();
    if (module_ != nullptr) {
      const absl::StatusOr<bool> fine = CheckReads();
      if (!fine.ok() || !*fine) return fine.status();
    }
    return TestTolerance();
  }

 private:
  CUdeviceptr base() const { return gpu_.arena.address(); }

  absl::Status Prepare() {
    if (request_.expected().empty()) {
      absl::StatusOr<Module*> module = gpu_.FindModule(request_.module());
      if (!module.ok()) return module.status();
      module_ = *module;
      absl::StatusOr<Module*> setup = gpu_.FindSetup(plan_, request_.setup());
      if (!setup.ok()) return setup.status();
      setup_ = *setup;
    }
    PAWL_RETURN_IF_ERROR(gpu_.arena.Reserve(arena_.bytes()));
    uint64_t bytes = 0, most = request_.self_test() ? OutputBytes(plan_) : 0;
    for (const v1::InputDraw& draw : request_.draws()) {
      bytes += BytesKeptOf(draw);
      most = std::max(most, draw.has_pieces() ? 2 * kPiecesBytes : BytesKeptOf(draw));
    }
    PAWL_RETURN_IF_ERROR(gpu_.staging.Reserve(most));
    return gpu_.shared.Reserve(bytes);
  }

  uint64_t BytesKeptOf(const v1::InputDraw& draw) const {
    return draw.has_pieces() ? PieceBytes(plan_) : OutputBytes(plan_);
  }

  absl::Status Fill(const Arena& arena, CUdeviceptr at) {
    const absl::StatusOr<Sources> sources = gpu_.pools.SourcesOf(plan_, *draw_);
    if (!sources.ok()) return sources.status();
    std::vector<Segment> segments = arena.Inputs(at, 0, *draw_, *sources);
    Append(&segments, arena.InOuts(at, 0, *draw_, *sources));
    SegmentTable table;
    PAWL_RETURN_IF_ERROR(table.Set(segments));
    PAWL_RETURN_IF_ERROR(gpu_.support.Fill(table, key_, draw_->call()));
    PAWL_CUDA(StreamSynchronize(gpu_.stream));  // it reads the table
    return absl::OkStatus();
  }

  absl::Status Call(const Arena& arena, CUdeviceptr at) {
    const std::vector<CUdeviceptr> tensors = arena.Addresses(at);
    StructTable structs;
    structs.Add(plan_, tensors);
    PAWL_RETURN_IF_ERROR(structs.Reserve());
    PAWL_RETURN_IF_ERROR(structs.Upload());
    if (setup_ != nullptr) PAWL_RETURN_IF_ERROR(setup_->Launch(plan_.setup(), tensors, structs, gpu_.stream));
    PAWL_RETURN_IF_ERROR(module_->FillSymbols(plan_, tensors, gpu_.stream));
    PAWL_RETURN_IF_ERROR(module_->Launch(plan_.launches(), tensors, structs, gpu_.stream));
    PAWL_CUDA(CtxSynchronize());
    return absl::OkStatus();
  }

  // What the outputs of a draw should be, at expected_.
  absl::Status Compute(const v1::InputDraw& draw) {
    draw_ = &draw;
    const absl::StatusOr<Key> key = KeyOf(draw.key());
    if (!key.ok()) return key.status();
    key_ = *key;
    // Only a self-test looks at the inputs of expected outputs.
    if (module_ != nullptr || request_.self_test()) PAWL_RETURN_IF_ERROR(Fill(arena_, base()));
    expected_.clear();
    if (module_ != nullptr) {
      PAWL_RETURN_IF_ERROR(Call(arena_, base()));
      for (const OutputSlot& slot : slots_) expected_.push_back(base() + arena_.Offset(slot.buffer));
      return absl::OkStatus();
    }
    const absl::StatusOr<Sources> sources = gpu_.pools.ExpectedOf(plan_, request_.expected(), draw.entry());
    if (!sources.ok()) return sources.status();
    for (const OutputSlot& slot : slots_) expected_.push_back(sources->at(plan_.tensors(slot.tensor).name()));
    return absl::OkStatus();
  }

  static bool IsOfOwnFill(const v1::InputDraw& draw) { return draw.distribution() == v1::DISTRIBUTION_UNSPECIFIED; }

  // Where draws of the bundle's own fill and others are mixed, those say what the request does not.
  absl::Status FindOwnRms() {
    own_rms_.assign(request_.own_rms().begin(), request_.own_rms().end());
    const auto& draws = request_.draws();
    const auto own = std::find_if(draws.begin(), draws.end(), IsOfOwnFill);
    mixed_ = own_rms_.empty() && own != draws.end() && !std::all_of(draws.begin(), draws.end(), IsOfOwnFill);
    if (!mixed_) return absl::OkStatus();
    PAWL_RETURN_IF_ERROR(Compute(*own));
    for (size_t i = 0; i < slots_.size(); ++i) {
      absl::StatusOr<v1::ReferenceOutput> norm = gpu_.support.Norm(expected_[i], plan_.tensors(slots_[i].tensor));
      if (!norm.ok()) return norm.status();
      own_rms_.push_back(norm->rms());
    }
    return absl::OkStatus();
  }

  absl::Status Compare(int call) {
    const bool scaled = !(mixed_ && IsOfOwnFill(request_.draws(call)));
    v1::CheckReply* check = reply_->mutable_check();
    const v1::InputDraw& draw = request_.draws(call);
    const std::vector<OutputSlot>& kept = draw.has_pieces() ? piece_slots_ : slots_;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const v1::PlanTensor& tensor = plan_.tensors(slots_[i].tensor);
      const v1::Tolerance& tolerance = ToleranceOf(plan_, tensor);
      const double absolute = tolerance.exact() ? 0 : tolerance.absolute();
      const double own_rms = scaled && i < own_rms_.size() ? own_rms_[i] : 0;
      // Other inputs may make an element so much larger than the rest that one step of its type exceeds the limit.
      const double share = own_rms > 0 && !tolerance.exact() ? 2 * UnitRoundoff(tensor.type()) : 0;
      PAWL_RETURN_IF_ERROR(
          CopyToGpu(gpu_.staging.address(), gpu_.shared.data() + kept_at_ + kept[i].offset, kept[i].bytes));
      absl::StatusOr<v1::ReferenceOutput> norm = gpu_.support.Norm(expected_[i], tensor);
      if (!norm.ok()) return norm.status();
      const bool whole = kept[i].bytes == slots_[i].bytes;
      absl::StatusOr<v1::OutputError> error =
          whole ? gpu_.support.Compare(gpu_.staging.address(), expected_[i], tensor, absolute, own_rms, share)
                : ComparePieces(i, draw.pieces(), absolute, own_rms, share, norm->rms());
      if (!error.ok()) return error.status();
      *check->add_errors() = *error;
      *check->add_references() = *norm;
    }
    kept_at_ += BytesKeptOf(draw);
    return absl::OkStatus();
  }

  // What was kept of an output, at the staging memory, with the same pieces of what it should be, put behind it. Limits
  // are those of the whole output, whose root mean square is `rms`.
  absl::StatusOr<v1::OutputError> ComparePieces(size_t i, uint64_t drawn, double absolute, double own_rms, double share,
                                                double rms) {
    const v1::PlanTensor& tensor = plan_.tensors(slots_[i].tensor);
    const std::vector<OutputPiece> pieces = PiecesOf(TensorBytes(tensor), PieceShare(slots_.size()), drawn);
    const CUdeviceptr expected = gpu_.staging.address() + kPiecesBytes;
    uint64_t done = 0;
    for (const OutputPiece& piece : pieces) {
      PAWL_CUDA(MemcpyDtoDAsync(expected + done, expected_[i] + piece.offset, piece.bytes, gpu_.stream));
      done += piece.bytes;
    }
    const int64_t bits = ElementBits(tensor.type());
    const auto elements = [&](uint64_t bytes) { return static_cast<int64_t>(bytes) * 8 / bits; };
    v1::PlanTensor kept = tensor;
    // The last piece ends with the output, whose last byte may be filled in part.
    kept.set_elements(elements(done) - (tensor.elements() * bits % 8 != 0));
    if (own_rms > 0) absolute *= std::max(1.0, rms / own_rms);
    absl::StatusOr<v1::OutputError> error =
        gpu_.support.Compare(gpu_.staging.address(), expected, kept, absolute, 0, share);
    if (!error.ok()) return error;
    if (error->first_wrong() >= 0) {
      const int64_t of_piece = elements(pieces[0].bytes);
      const OutputPiece& piece = pieces[static_cast<size_t>(error->first_wrong() / of_piece)];
      error->set_first_wrong(elements(piece.offset) + error->first_wrong() % of_piece);
    }
    if (error->relative() == 0) return error;
    const absl::StatusOr<v1::ReferenceOutput> norm = gpu_.support.Norm(expected, kept);
    if (!norm.ok()) return norm.status();
    error->set_relative(
        RelativeOfPieces(error->relative(), error->mean_absolute(), error->max_absolute(), norm->rms(), rms, own_rms));
    return error;
  }

  // The reference once more with its tensors elsewhere and NaN around them: where it gives something else, it reads
  // what it was not given, as an index beyond its table does. False: the reply says so.
  absl::StatusOr<bool> CheckReads() {
    const uint64_t bytes = 2 * PlacementBytes(plan_, plan_, 1);
    if (bytes > kMostElsewhere) return true;
    SecretRandom random;
    const Arena elsewhere = DrawPlacement(plan_, plan_, 1, bytes, PlacementStyle::kScattered, random).front();
    DeviceBuffer region(kMaxAlign);
    PAWL_RETURN_IF_ERROR(region.Reserve(bytes));
    PAWL_CUDA(MemsetD8Async(region.address(), 0xff, bytes, gpu_.stream));
    PAWL_RETURN_IF_ERROR(Fill(elsewhere, region.address()));
    PAWL_RETURN_IF_ERROR(Call(elsewhere, region.address()));
    for (size_t i = 0; i < slots_.size(); ++i) {
      const v1::PlanTensor& tensor = plan_.tensors(slots_[i].tensor);
      const v1::Tolerance& tolerance = ToleranceOf(plan_, tensor);
      const absl::StatusOr<v1::OutputError> error =
          gpu_.support.Compare(region.address() + elsewhere.Offset(slots_[i].buffer), expected_[i], tensor,
                               tolerance.exact() ? 0 : tolerance.absolute());
      if (!error.ok()) return error.status();
      if (WithinTolerance(*error, tolerance)) continue;
      v1::Failure& failure = *reply_->mutable_failure();
      failure.set_stage(v1::STAGE_VALIDATE);
      failure.set_check(v1::CHECK_GUARD_BAND);
      failure.set_size(plan_.size());
      failure.set_message(absl::StrCat("it reads outside of its tensors: element ", error->first_wrong(), " of ",
                                       tensor.name(), " depends on what lies around them", IndexAdvice(plan_)));
      return false;
    }
    return true;
  }

  absl::Status TestTolerance() {
    for (size_t i = 0; i < slots_.size(); ++i) {
      const v1::PlanTensor& tensor = plan_.tensors(slots_[i].tensor);
      std::optional<Segment> initial;
      for (const Segment& segment : InOutsHere()) {
        if (segment.address == base() + arena_.Offset(slots_[i].tensor)) initial = segment;
      }
      SelfTest test(gpu_, plan_, tensor, expected_[i], gpu_.staging.address(), reply_->mutable_check());
      PAWL_RETURN_IF_ERROR(test.Run(arena_, base(), initial, key_, draw_->call()));
    }
    return absl::OkStatus();
  }

  std::vector<Segment> InOutsHere() const {
    const absl::StatusOr<Sources> sources = gpu_.pools.SourcesOf(plan_, *draw_);
    return arena_.InOuts(base(), 0, *draw_, sources.ok() ? *sources : Sources());
  }

  GpuContext& gpu_;
  const v1::CheckRequest& request_;
  const v1::Plan& plan_;
  const Arena arena_;
  const std::vector<OutputSlot> slots_, piece_slots_;
  uint64_t kept_at_ = 0;  // in shared memory: where the present call's outputs are
  v1::RunnerReply* const reply_;
  Module* module_ = nullptr;  // null: the outputs that are right were provided
  Module* setup_ = nullptr;
  const v1::InputDraw* draw_ = nullptr;  // the last that was computed
  Key key_ = {};
  std::vector<CUdeviceptr> expected_;  // as slots_
  std::vector<double> own_rms_;        // as slots_: the request's
  bool mixed_ = false;                 // some draws are of the bundle's own fill, which needs no scaling
};

}  // namespace

absl::Status CheckOutputs(GpuContext& gpu, const v1::CheckRequest& request, v1::RunnerReply* reply) {
  PAWL_RETURN_IF_ERROR(CheckPlan(request.plan()));
  reply->mutable_check();
  return OutputCheck(gpu, request, reply).Run();
}

}  // namespace pawl

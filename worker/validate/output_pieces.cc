#include "worker/validate/output_pieces.h"

#include <algorithm>
#include <cmath>

namespace pawl {
namespace {

constexpr uint64_t kUnit = 64;  // bytes, which the elements of all types divide

}  // namespace

uint64_t PieceShare(size_t outputs) {
  const uint64_t share = kPiecesBytes / std::max<size_t>(1, outputs);
  return std::max(share / (kPieces * kUnit), uint64_t{1}) * kPieces * kUnit;
}

std::vector<OutputPiece> PiecesOf(uint64_t output_bytes, uint64_t share, uint64_t drawn) {
  if (output_bytes <= share) return {{0, output_bytes}};
  const uint64_t piece_bytes = share / kPieces;
  // The distance is drawn as well: what is wrong at the same distance again and again is met somewhere.
  const uint64_t most = output_bytes / (kPieces - 1) / kUnit, choices = most / kPieces + 1;
  const uint64_t distance = std::max((most - drawn % choices) * kUnit, piece_bytes);
  const uint64_t room = output_bytes - ((kPieces - 2) * distance + piece_bytes);
  const uint64_t first = drawn / choices % (room / kUnit + 1) * kUnit;
  std::vector<OutputPiece> pieces;
  for (uint64_t i = 0; i + 1 < kPieces; ++i) pieces.push_back({first + i * distance, piece_bytes});
  pieces.push_back({output_bytes - piece_bytes, piece_bytes});
  return pieces;
}

double RelativeOfPieces(double relative, double mean, double most, double pieces_rms, double rms, double own_rms) {
  if (relative == 0) return 0;
  // Where the pieces should be 0, no error is known but its bound: the mean of squares is at most mean times largest.
  const double error = pieces_rms > 0 ? relative * pieces_rms : std::sqrt(mean * most);
  return error / std::max(rms, own_rms);
}

}  // namespace pawl

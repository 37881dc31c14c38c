#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pawl {

// Of the outputs of a timed call no more than this is checked: of a large one pieces at equal distances, and one at its
// end. The distance and the place of the first are drawn.
inline constexpr uint64_t kPiecesBytes = uint64_t{2} << 20;
inline constexpr uint64_t kPieces = 128;

// Each of so many outputs has the same share.
uint64_t PieceShare(size_t outputs);

struct OutputPiece {
  uint64_t offset;  // in the output
  uint64_t bytes;
};
// All of an output that is no larger than its share. The last piece may overlap the one before it.
std::vector<OutputPiece> PiecesOf(uint64_t output_bytes, uint64_t share, uint64_t drawn);

// The relative error of a whole output by that of its pieces. `relative`, `mean` and `most` are what comparing them
// gave, `pieces_rms` and `rms` what the pieces and the whole should have, and `own_rms` the least that counts; 0: none.
double RelativeOfPieces(double relative, double mean, double most, double pieces_rms, double rms, double own_rms);

}  // namespace pawl

#include "worker/validate/output_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace pawl {
namespace {

TEST(OutputPieces, AreTheWholeOfASmallOutput) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{4096}, kPiecesBytes}) {
    const std::vector<OutputPiece> pieces = PiecesOf(bytes, kPiecesBytes, 12345);
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].offset, 0u);
    EXPECT_EQ(pieces[0].bytes, bytes);
  }
}

TEST(OutputPieces, LieInsideAndOnlyTheLastMayOverlap) {
  for (const uint64_t bytes : {kPiecesBytes + 1, kPiecesBytes + 4, 3 * kPiecesBytes - 2, (uint64_t{2} << 30) + 12}) {
    for (uint64_t draw = 1; draw < 200; ++draw) {
      const std::vector<OutputPiece> pieces = PiecesOf(bytes, kPiecesBytes, draw * 0x9e3779b97f4a7c15);
      uint64_t end = 0, all = 0;
      for (const OutputPiece& piece : pieces) {
        if (&piece != &pieces.back()) EXPECT_GE(piece.offset, end);
        end = piece.offset + piece.bytes;
        EXPECT_LE(end, bytes);
        all += piece.bytes;
      }
      EXPECT_EQ(end, bytes);
      EXPECT_EQ(all, kPiecesBytes);
    }
  }
}

bool Meet(const std::vector<OutputPiece>& pieces, uint64_t begin, uint64_t end) {
  return std::any_of(pieces.begin(), pieces.end(), [&](const OutputPiece& piece) {
    return piece.offset + piece.bytes > begin && piece.offset < end;
  });
}

TEST(OutputPieces, MeetWhatIsWrongOverMoreThanADistance) {
  const uint64_t bytes = uint64_t{2} << 30, distance = bytes / (kPieces - 1);
  for (uint64_t draw = 1; draw < 100; ++draw) {
    const std::vector<OutputPiece> pieces = PiecesOf(bytes, kPiecesBytes, draw * 0x9e3779b97f4a7c15);
    for (uint64_t begin = 2 * distance; begin + 3 * distance <= bytes; begin += distance / 3) {
      EXPECT_TRUE(Meet(pieces, begin, begin + distance));
    }
    EXPECT_TRUE(Meet(pieces, 0, 2 * distance)) << "the first lies somewhere there";
  }
}

TEST(OutputPieces, MeetMostOfWhatIsWrongAgainAndAgainAtOneDistance) {
  const uint64_t bytes = uint64_t{1} << 30, distance = bytes / (kPieces - 1) / 64 * 64, wrong = distance / 50;
  int met = 0;
  for (uint64_t draw = 1; draw <= 300; ++draw) {
    const std::vector<OutputPiece> pieces = PiecesOf(bytes, kPiecesBytes, draw * 0x9e3779b97f4a7c15);
    bool any = false;
    for (uint64_t begin = distance / 3; begin + wrong <= bytes; begin += distance) {
      any |= Meet(pieces, begin, begin + wrong);
    }
    met += any;
  }
  EXPECT_GT(met, 120) << "9 of 300 would be met if only the place of the first were drawn";
}

TEST(OutputPieces, MayMeetEveryByte) {
  for (const size_t outputs : {1, 2, 3, 5, 8, 16, 64}) {
    const uint64_t share = PieceShare(outputs), bytes = share + share / 100 * 7 + 12;
    std::vector<bool> met(bytes);
    for (uint64_t draw = 1; draw < 3000; ++draw) {
      for (const OutputPiece& piece : PiecesOf(bytes, share, draw * 0x9e3779b97f4a7c15)) {
        std::fill_n(met.begin() + static_cast<ptrdiff_t>(piece.offset), piece.bytes, true);
      }
    }
    EXPECT_EQ(std::count(met.begin(), met.end(), false), 0) << outputs << " outputs of " << bytes << " bytes";
  }
}

TEST(OutputPieces, MayLieAnywhere) {
  std::set<uint64_t> first;
  for (uint64_t draw = 1; draw < 100000; ++draw) {
    first.insert(PiecesOf((uint64_t{64} << 20) + 4, kPiecesBytes, draw * 0x9e3779b97f4a7c15).front().offset);
  }
  EXPECT_EQ(*first.begin(), 0u);
  EXPECT_GT(first.size(), 7000u);  // of 8001 places
}

TEST(OutputPieces, OfSeveralOutputsShareTheRoom) {
  for (const size_t outputs : {1, 2, 3, 4, 100}) {
    const uint64_t share = PieceShare(outputs);
    EXPECT_LE(share * outputs, kPiecesBytes);
    uint64_t all = 0;
    for (const OutputPiece& piece : PiecesOf(uint64_t{1} << 30, share, 99)) all += piece.bytes;
    EXPECT_EQ(all, share);
  }
}

TEST(OutputPieces, HaveTheRelativeErrorOfTheWhole) {
  // As in the whole.
  EXPECT_DOUBLE_EQ(RelativeOfPieces(1e-3, 1e-3, 1e-3, 1, 1, 0), 1e-3);
  // Large values in the pieces make an error look small that is not, and small ones the other way round.
  EXPECT_DOUBLE_EQ(RelativeOfPieces(1e-3, 0, 0, 10, 1, 0), 1e-2);
  EXPECT_DOUBLE_EQ(RelativeOfPieces(1e-1, 0, 0, 0.01, 1, 0), 1e-3);
  // Where they should be 0, the error itself counts.
  EXPECT_DOUBLE_EQ(RelativeOfPieces(INFINITY, 0.2, 0.2, 0, 2, 0), 0.1);
  EXPECT_EQ(RelativeOfPieces(0, 0, 0, 0, 2, 0), 0);
  // The bundle's own magnitude is the least.
  EXPECT_DOUBLE_EQ(RelativeOfPieces(1e-3, 0, 0, 1, 1, 4), 2.5e-4);
}

}  // namespace
}  // namespace pawl

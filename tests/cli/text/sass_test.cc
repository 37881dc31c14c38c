#include "cli/text/sass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/text/differences.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// As cuobjdump of CUDA 12 and 13 lays it out.
constexpr char kSass[] = R"(
Fatbin elf code:
================
arch = sm_90

	code for sm_90
		Function : scale_rows
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                           /* 0x00000a00ff017b82 */
                                                                                    /* 0x000fe20000000800 */
        /*0010*/                   S2R R0, SR_TID.X ;                               /* 0x0000000000007919 */
                                                                                    /* 0x000e220000002100 */
        /*0020*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;                 /* 0x0000000402048981 */
                                                                                    /* 0x000ea8000c1e1d00 */
        /*0030*/               @P1 LDG.E R8, desc[UR4][R2.64+0x10] ;                /* 0x0000000402048981 */
        /*0040*/                   STL [R1], R4 ;                                   /* 0x0000000402048981 */
        /*0050*/                   EXIT ;                                           /* 0x000000000000794d */
        /*0060*/                   BRA 0x60;                                        /* 0xfffffffc00fc7947 */
        /*0070*/                   NOP;                                             /* 0x0000000000007918 */
		..........


		Function : _Z7combinePfS_
        /*0000*/                   EXIT ;                                           /* 0x000000000000794d */
)";

TEST(InstructionMixTest, CountsOpcodesByFunction) {
  const std::map<std::string, InstructionMix> mixes = InstructionMixes(kSass);
  ASSERT_EQ(mixes.size(), 2u);
  EXPECT_EQ(mixes.at("scale_rows"),
            (InstructionMix{{"LDC", 1}, {"S2R", 1}, {"LDG", 2}, {"STL", 1}, {"EXIT", 1}, {"BRA", 1}}));
  EXPECT_EQ(mixes.at("_Z7combinePfS_"), (InstructionMix{{"EXIT", 1}}));
  EXPECT_EQ(InstructionMixes(".section .text.copy,\"ax\"\n.text.copy:\n        /*0000*/   MOV R1, c[0x0][0x28] ;\n"),
            (std::map<std::string, InstructionMix>{{"copy", {{"MOV", 1}}}}))
      << "nvdisasm";
  EXPECT_TRUE(InstructionMixes("").empty());
  EXPECT_TRUE(InstructionMixes("/*\n/*zz*/ MOV\n*/\n/**/ MOV\n").empty());
}

TEST(InstructionMixTest, IsComparedWithTheLargestDifferencesFirst) {
  Differences differences;
  differences.MachineCode({{"copy", {{"LDG", 8}, {"STG", 8}, {"EXIT", 1}, {"STL", 2}}}, {"old", {{"EXIT", 1}}}},
                          {{"copy", {{"LDG", 2}, {"STG", 7}, {"EXIT", 1}}}});
  const std::string text = differences.TableText("iteration 0", "iteration 4", 0);
  EXPECT_THAT(text, AllOf(HasSubstr("machine code of copy"), HasSubstr("instructions"), HasSubstr("spills"),
                          HasSubstr("machine code of old"), Not(HasSubstr("EXIT"))));
  EXPECT_LT(text.find("LDG"), text.find("STG"));
}

}  // namespace
}  // namespace pawl

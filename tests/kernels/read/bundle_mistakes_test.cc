// A table of mistakes in kernel.toml: what is replaced in the golden bundle, and the one message that must come, at the
// line of the replacement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/read/bundle_reader.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Mistake {
  std::string name;
  std::string from;
  std::string to;
  std::string message;
  int lines_down = 0;  // from the line of the replacement to the line of the message
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class MistakeTest : public ::testing::TestWithParam<Mistake> {};
class ClubMistakeTest : public ::testing::TestWithParam<Mistake> {};
class GraphMistakeTest : public ::testing::TestWithParam<Mistake> {};

void ExpectReported(const Mistake& mistake, const BundleFolder& folder) {
  const int line = folder.Replace(mistake.from, mistake.to) + mistake.lines_down;
  const BundleReading reading = ReadBundle(folder.path());
  std::string all;
  for (const Problem& problem : reading.problems) all += FormatProblem(problem) + "\n";
  ASSERT_EQ(reading.problems.size(), 1u) << all;
  EXPECT_EQ(reading.problems[0].file, (folder.path() / "kernel.toml").string());
  EXPECT_EQ(reading.problems[0].line, line) << all;
  EXPECT_THAT(reading.problems[0].message, HasSubstr(mistake.message));
}

TEST_P(MistakeTest, IsReportedAtItsLine) { ExpectReported(GetParam(), BundleFolder()); }
TEST_P(ClubMistakeTest, IsReportedAtItsLine) { ExpectReported(GetParam(), BundleFolder("club_steps")); }
TEST_P(GraphMistakeTest, IsReportedAtItsLine) { ExpectReported(GetParam(), BundleFolder("graph_steps")); }

const Mistake kMistakes[] = {
    {"NotToml", "[goal]", "[goal", "not TOML"},
    {"QuotesInQuotes", "summary  = \"out", "summary  = \"a \"b\" c out", "saw 'b'"},
    {"QuotesInAName", "name     = \"scale_rows\"", "name     = 'a \"b\"'", "expected a letter, then letters"},
    {"DuplicateKey", "[goal]", "name = \"again\"\n[goal]", "not TOML"},
    {"MisspeltTopKey", "summary ", "sumary ", "did you mean summary?"},
    {"MisspeltTable", "[hidden]", "[hiden]", "did you mean hidden?"},
    {"UnknownKeyListsKeys", "speedup = 1.5", "zzzzzzz = 1.5",
     "[goal]: unknown key zzzzzzz; expected portfolio, size, sizes, speedup, worst"},
    {"MisspeltVariableKey", "values  = [1, 2, 4]\nstart ", "values  = [1, 2, 4]\nstrat = 2\nstart ",
     "[[variable]] SPLITS: unknown key strat; expected affects, name, option, replaces, start, values; did you mean "
     "start?",
     1},
    {"WrongType", "name     = \"scale_rows\"", "name     = 7", "name is a whole number; expected a text in quotes"},
    {"BundleName", "name     = \"scale_rows\"", "name     = \"a/b\"", "expected a letter, then letters"},
    {"MissingName", "name     = \"scale_rows\"\n", "", "the key name is missing"},
    {"EmptyText", "source   = \"scale_rows.cu\"", "source   = \" \"", "source is empty"},
    {"LineBreak", "summary  = \"out", "summary  = \"o\\nut", "one line of text"},
    {"MissingSource", "scale_rows.cu", "other.cu", "source: the file other.cu can't be read: No such file"},
    {"LongPath", "scale_rows.cu", std::string(257, 'a'), "source: the path has 257 bytes; expected at most 256"},
    {"Compiler", "compiler = \"nvrtc\"", "compiler = \"nvrt\"", "expected nvrtc, nvcc; did you mean nvrtc?"},
    {"Timing", "timing   = \"cold\"", "timing   = \"hot\"", "timing is \"hot\"; expected warm, cold"},
    {"Deterministic", "deterministic = false", "deterministic = \"no\"", "expected true or false"},
    {"Option", "\"--use_fast_math\"", "\"use_fast_math\"", "does not begin with -"},
    {"Architecture", "\"--use_fast_math\"", "\"-arch=sm_70\"", "the GPU of the worker decides"},
    {"GeneratedCode", "\"--use_fast_math\"", "\"--generate-code=arch=compute_90,code=sm_90\"", "the worker decides"},
    {"GoalSize", "size    = \"main\"", "size    = \"mian\"", "which is not a [[size]]; expected tiny, main; did you"},
    {"GoalSpeedup", "speedup = 1.5", "speedup = 0", "speedup is 0; expected more than 0"},
    {"SpeedupNotFinite", "speedup = 1.5", "speedup = inf", "speedup is not finite"},
    {"LongSizeName", "[[tensor]]", "[[size]]\nname = \"" + std::string(65, 's') + "\"\nROWS = 9\nCOLS = 9\n[[tensor]]",
     "name has 65 bytes; expected at most 64", 1},
    {"DuplicateSize", "[[tensor]]", "[[size]]\nname = \"tiny\"\nROWS = 9\nCOLS = 9\n[[tensor]]",
     "there is another size of this name", 1},
    {"SizeZero", "ROWS = 8", "ROWS = 0", "ROWS is 0; expected a whole number from 1 to 2147483647"},
    {"SizeHuge", "COLS = 4096", "COLS = 4096000000", "expected a whole number from 1 to 2147483647"},
    {"SizeMissing", "[[size]]\nname = \"main\"\nROWS = 1024", "[[size]]\nname = \"main\"", "the key ROWS is missing"},
    {"SizeExtra", "ROWS = 1024", "ROWS = 1024\nDEPTH = 2", "the size before it has no DEPTH", 1},
    {"TensorType", "type  = \"f16\"", "type  = \"fp16\"", "bool, i4, u4; did you mean f16?"},
    {"TensorRole", "role  = \"scratch\"", "role  = \"scrach\"", "did you mean scratch?"},
    {"TensorFill", "fill  = \"uniform\"", "fill  = \"unifrom\"", "did you mean uniform?"},
    {"FillOfOutput", "role  = \"output\"", "role  = \"output\"\nfill = \"normal\"", "fill is for inputs", 1},
    {"RangeOfOutput", "role  = \"output\"\ntolerance", "role  = \"output\"\nrange = [0, 1]\ntolerance",
     "range is for inputs", 1},
    {"RangeMissingOfIntegers", "range = [0, \"COLS - 1\"]\n", "",
     "[[tensor]] first: the key range is missing; an i32 input must say what it may hold", -4},
    {"RangeOfOne", "range = [-1000, 1000]", "range = [1000]", "range has 1 entries; expected the lowest and"},
    {"RangeBackwards", "range = [-1000, 1000]", "range = [1000, -1000]", "the lowest value is 1000, the highest -1000",
     -5},
    {"RangeBeyondTheType", "range = [-1000, 1000]", "range = [-1000, 100000]", "which the tensor's type can't hold",
     -5},
    {"RangeNotWhole", "range = [0, \"COLS - 1\"]", "range = [0, \"COLS / 3\"]", "fits into an i32"},
    {"RangeUsesVariable", "range = [0, \"COLS - 1\"]", "range = [0, \"TILE\"]", "TILE is a variable"},
    {"AlignNoPower", "align = 16", "align = 24", "align is 24; expected a power of two from 2"},
    {"AlignTooSmall", "align = 16", "align = 1", "align is 1; expected a power of two from 2, the bytes of an element"},
    {"AlignTooLarge", "align = 16", "align = 8192", "expected a whole number from 1 to 4096"},
    {"ExactInput", "align = 16", "exact = true", "exact is for outputs"},
    {"ToleranceOfInput", "align = 16", "tolerance = { absolute = 1, relative = 0.1 }", "tolerance is for outputs"},
    {"ToleranceAndExact", "exact = true", "exact = true\ntolerance = { absolute = 1, relative = 0.1 }",
     "exact and tolerance exclude each other"},
    {"ToleranceOfOutputTakesZeros", "relative = 0.0005 }", "relative = 1.0 }",
     "[[tensor]] out: tolerance: relative is 1; expected less than 1"},
    {"ToleranceOfOutputMisspelt", "relative = 0.0005 }", "relativ = 0.0005, relative = 0.1 }", "unknown key relativ"},
    {"ShapeUsesVariable", "shape = [\"ROWS\", \"COLS\"]\nfill", "shape = [\"ROWS\", \"TILE\"]\nfill",
     "TILE is a variable"},
    {"ShapeUnknownName", "shape = [\"SPLITS\", \"ROWS\", 2]", "shape = [\"SPLITS\", \"ROW\", 2]",
     "unknown name ROW; expected COLS,"},
    {"ShapeNotWhole", "shape = [\"SPLITS\", \"ROWS\", 2]", "shape = [\"SPLITS\", \"ROWS / 3\", 2]",
     "expected a whole number of at least 1"},
    {"ShapeTooLarge", "shape = [\"SPLITS\", \"ROWS\", 2]", "shape = [\"1e12\", \"1e12\", 2]", "2^40", -3},
    {"ShapeEmpty", "shape = [\"SPLITS\", \"ROWS\", 2]", "shape = []", "shape is an empty list; expected expressions"},
    {"TensorTakesSizesName", "[[variable]]", "[[tensor]]\nname = \"ROWS\"\ntype = \"f32\"\nshape = [1]\n[[variable]]",
     "the name ROWS is taken by the size in line 15", 1},
    {"VariableTakesSizesName", "name    = \"MAX_REGISTERS\"", "name    = \"COLS\"",
     "the name COLS is taken by the size in line 16"},
    {"VariableTwice", "name    = \"MAX_REGISTERS\"", "name    = \"TILE\"",
     "the name TILE is taken by the variable in line"},
    {"VariableTakesLimitsName", "name    = \"MAX_REGISTERS\"", "name    = \"SM_COUNT\"", "is the name of a GPU limit"},
    {"VariableBadName", "name    = \"MAX_REGISTERS\"", "name    = \"MAX-REGISTERS\"", "can't name a variable"},
    {"VariableLikeASizesMacro", "name    = \"MAX_REGISTERS\"", "name    = \"SIZE_X\"", "macro of a size"},
    {"StartNotAmongValues", "start   = 64", "start   = 65",
     "start is 65, which is not among values; expected one of 64, 32, 128"},
    {"MissingStart", "values  = [64, 255]\nstart   = 255\n", "values  = [64, 255]\n", "the key start is missing", -3},
    {"EmptyValues", "values  = [64, 255]", "values  = []", "values is an empty list; expected whole numbers"},
    {"DuplicateValue", "values  = [64, 255]", "values  = [64, 255, 64]", "values has 64 twice"},
    {"ValueWithFraction", "values  = [64, 255]", "values  = [64, 2.5, 255]",
     "an entry of values is a number with a fraction"},
    {"ValueTooLarge", "values  = [64, 255]", "values  = [64, 255, 3000000000]", "an entry of values is 3000000000"},
    {"OptionWithoutBraces", "option  = \"-maxrregcount={}\"", "option  = \"-maxrregcount=\"", "has no {}"},
    {"UnknownResource", "{ shared_memory = \"+\" }", "{ shared_memroy = \"+\" }",
     "instructions; did you mean shared_memory?"},
    {"BadDirection", "{ shared_memory = \"+\" }", "{ shared_memory = \"up\" }", "expected +, -"},
    {"ScalarType", "type  = \"i32\"\nvalue", "type  = \"u4\"\nvalue", "expected f32, f64, i32, f16,"},
    {"ScalarNotWhole", "value = \"ceil_div(COLS, TILE)\"", "value = \"COLS / 3\"", "fits into an i32"},
    {"ScalarNotFinite", "value = \"1 / sqrt(COLS)\"", "value = \"1 / (COLS - 32)\"", "is infinite"},
    {"ScalarTakesTensorsName", "[[constraint]]", "[[scalar]]\nname = \"in\"\ntype = \"f32\"\nvalue = 1\n[[constraint]]",
     "the name in is taken by the tensor in line 23", 1},
    {"ConstraintSyntax", "that = \"SPLITS == 1 || TILE <= 64\"", "that = \"SPLITS == 1 || \"", "is not an expression"},
    {"ConstraintAssigns", "that = \"SPLITS == 1 ||", "that = \"SPLITS = 1 ||", "write == to compare"},
    {"ConstraintUnknownName", "that = \"SPLITS == 1 ||", "that = \"SPLITZ == 1 ||",
     "unknown name SPLITZ; expected COLS, MAX_REGISTERS, ROWS, SPLITS, TILE; did you mean SPLITS?"},
    {"ConstraintUsesLimit", "that = \"SPLITS == 1 ||", "that = \"SM_COUNT == 1 ||", "SM_COUNT is a GPU limit"},
    {"ConstraintUsesHiddenSize", "that = \"SPLITS == 1 ||", "that = \"ROWS > 0 ||",
     "which [hidden] lets validation change"},
    {"ConstraintForbidsStart", "that = \"SPLITS == 1 ||", "that = \"SPLITS == 2 && ",
     "forbids the start variant (MAX_REGISTERS=255 SPLITS=1 TILE=64)"},
    {"ConstraintDividesByZero", "that = \"SPLITS == 1 || TILE <= 64\"", "that = \"1 / (SPLITS - 2)\"",
     "is infinite: it divides by zero"},
    {"HiddenUnknownSize", "ROWS = [1, 600]", "ROW = [1, 600]",
     "there is no size ROW; expected COLS, ROWS; did you mean ROWS?"},
    {"HiddenBackwards", "ROWS = [1, 600]", "ROWS = [600, 1]", "expected the lowest and the highest value"},
    {"HiddenOne", "ROWS = [1, 600]", "ROWS = [1]", "expected the lowest and the highest value"},
    {"HiddenZero", "ROWS = [1, 600]", "ROWS = [0, 600]", "an entry of ROWS is 0; expected a whole number from 1"},
    {"HiddenNoMultiple", "{ range = [32, 720], multiple = 16 }", "{ range = [33, 40], multiple = 16 }",
     "which holds no multiple of 16"},
    {"HiddenMultipleZero", "multiple = 16", "multiple = 0", "multiple is 0; expected a whole number from 1"},
    {"HiddenMisspelt", "multiple = 16", "multipel = 16", "did you mean multiple?"},
    {"HiddenWithoutRange", "{ range = [32, 720], multiple = 16 }", "{ multiple = 16 }", "the key range is missing"},
    {"Entry", "entry     = \"combine\"", "entry     = \"combine<4\"",
     "expected the name of an extern \"C\" __global__"},
    {"GridUnknownName", "\"ceil_div(COLS, TILE)\", \"ROWS\"", "\"ceil_div(COLS, TILES)\", \"ROWS\"",
     "SHARED_PER_SM, SM_COUNT; did you mean TILE?"},
    {"GridUnknownFunction", "\"ceil_div(COLS, TILE)\", \"ROWS\"", "\"ceildiv(COLS, TILE)\", \"ROWS\"",
     "unknown function ceildiv"},
    {"GridNotWhole", "\"ceil_div(COLS, TILE)\", \"ROWS\"", "\"COLS / TILE\", \"ROWS\"",
     "is 0.5 for the start variant at size tiny; expected a whole number of at least 1"},
    {"GridZero", "\"ROWS\", \"SPLITS\"]", "\"ROWS - 8\", \"SPLITS\"]", "is 0 for the start variant at size tiny"},
    {"GridNotWholeAtAHiddenSize", "\"ROWS\", \"SPLITS\"]", "\"ROWS / 8\", \"SPLITS\"]",
     "is 0.125 for the start variant at size hidden COLS=32 ROWS=1"},
    {"GridZeroAtOneHiddenSize", "\"ROWS\", \"SPLITS\"]", "\"ROWS * ROWS - 10 * ROWS + 25\", \"SPLITS\"]",
     "is 0 for the start variant at size hidden COLS=96 ROWS=5"},
    {"GridOfFour", "\"ROWS\", \"SPLITS\"]", "\"ROWS\", \"SPLITS\", 1]", "grid has 4 entries; expected one to three"},
    {"GridIsText", "grid      = [\"ROWS\"]", "grid      = \"ROWS\"", "grid is a text; expected a list of expressions"},
    {"SharedNegative", "shared    = \"TILE * 4\"", "shared    = \"TILE - 65\"", "expected a whole number of bytes"},
    {"ArgumentUnknown", "\"partial\", \"ROWS\", \"COLS\", \"factor\"", "\"partial\", \"ROWS\", \"COLS\", \"facto\"",
     "argument facto is neither a tensor nor a scalar nor a size; expected COLS, ROWS, copied, factor, first, in, out, "
     "partial, tiles; did you mean factor?"},
    {"ArgumentIsVariable", "\"factor\", \"tiles\"", "\"factor\", \"TILE\"", "argument TILE is a variable"},
    {"ReferenceUsesVariable", "block     = [256]", "block     = [\"TILE\"]", "TILE is a variable; expected COLS, ROWS"},
    {"ReferenceUsesScratch", "\"in\", \"out\", \"COLS\", \"factor\", \"first\"", "\"in\", \"out\", \"partial\"",
     "partial is scratch"},
    {"ReferenceUsesVariableByAScalar", "\"in\", \"out\", \"COLS\", \"factor\", \"first\"", "\"in\", \"out\", \"tiles\"",
     "argument tiles depends on the variable TILE"},
    {"WorkNegative", "flops = \"ROWS*COLS\"", "flops = \"0 - ROWS*COLS\"", "expected 0 or more"},
    {"WorkUsesVariable", "flops = \"ROWS*COLS\"", "flops = \"ROWS*TILE\"", "TILE is a variable"},
    {"ToleranceTakesZeros", "relative = 0.001", "relative = 1.0", "an output of zeros has a relative error of 1"},
    {"ToleranceZero", "relative = 0.001", "relative = 0", "expected more than 0 and less than 1"},
    {"ToleranceNegative", "absolute = 0.01", "absolute = -0.01", "absolute is -0.01; expected 0 or more"},
    {"ToleranceIsText", "absolute = 0.01", "absolute = \"0.01\"", "expected a number, without quotes"},
    {"BaselineEmpty", "command = [\"python3\", \"baseline.py\"]", "command = []", "command is an empty list"},
    {"BaselineIsText", "command = [\"python3\", \"baseline.py\"]", "command = \"python3\"", "expected a list of texts"},
};

INSTANTIATE_TEST_SUITE_P(Bundle, MistakeTest, ::testing::ValuesIn(kMistakes),
                         [](const auto& info) { return info.param.name; });

// Of the bundle that has files, problem.py, words and the rest.
const Mistake kGraphMistakes[] = {
    {"FilesNone", "include/**/*.cuh", "include/**/*.cuhh", "files: no file is like include/**/*.cuhh"},
    {"FilesOutside", "\"include/**/*.cuh\"", "\"../**/*.cuh\"", "may lie outside of the bundle's folder"},
    {"FilesMissing", "\"include/**/*.cuh\"", "\"include/other.cuh\"",
     "files: the file include/other.cuh can't be read"},
    {"IncludeName", "[\"cooperative_groups\"]", "[\"../cub\"]", "can't name a header library"},
    {"ProblemMissing", "problem = \"problem.py\"", "problem = \"other.py\"",
     "problem: the file other.py can't be read"},
    {"ProblemAndReference", "[setup]",
     "[reference]\nsource = \"setup.cu\"\n[[reference.launch]]\nentry = \"x\"\n"
     "grid = [1]\nblock = [1]\narguments = [\"state\", \"visits\"]\n[setup]",
     "problem has the reference already"},
    {"GoalSizeUnknown", "large = 0.75", "larg = 0.75", "size is \"larg\", which is not a [[size]]"},
    {"GoalWeightsSum", "large = 0.75", "large = 0.7", "the weights have the sum 0.95; expected 1"},
    {"GoalWeightNegative", "large = 0.75", "large = -0.75", "the weight of large is -0.75; expected more than 0"},
    {"GoalSizeTwice", "[goal]", "[goal]\nsize = \"small\"", "size and sizes exclude each other"},
    {"GoalPortfolioOfOneSize", "sizes   = { small = 0.25, large = 0.75 }\nworst   = 0.98\n", "size    = \"large\"\n",
     "one size needs one variant; expected portfolio with several sizes", 1},
    {"GoalPortfolioOfOneSizeWithAWeight", "{ small = 0.25, large = 0.75 }\nworst   = 0.98\n", "{ large = 1.0 }\n",
     "one size needs one variant; expected portfolio with several sizes", 1},
    {"GoalWorstOfOneSizeWithAWeight", "{ small = 0.25, large = 0.75 }\nworst   = 0.98\nportfolio = 2",
     "{ large = 1.0 }\nworst   = 0.98", "and there is one; expected it with several sizes", 1},
    {"GoalWorstOfOneSize", "sizes   = { small = 0.25, large = 0.75 }\nworst   = 0.98\nportfolio = 2",
     "size    = \"large\"\nworst   = 0.98", "worst limits what a size of several may lose, and there is one", 1},
    {"GoalWorst", "worst   = 0.98", "worst   = 1.5", "worst is 1.5; expected 0 to 1"},
    {"GoalPortfolio", "portfolio = 2", "portfolio = 9", "portfolio is 9; expected a whole number from 1 to 8"},
    {"FillOfTwo", "{ integers = [0, \"NODES - 1\"] }", "{ integers = [0, 9], sorted = [0, 9] }",
     "it has 2 of its keys; expected one"},
    {"DataNone", "[\"graphs.py\"]", "[\"graph.py\"]", "data: the file graph.py can't be read"},
    {"DataOutside", "[\"graphs.py\"]", "[\"../*.py\"]", "may lie outside of the bundle's folder"},
    {"DataElsewhere", "[\"graphs.py\"]", "[\"../graphs.py\"]", "../graphs.py does not lie beside problem.py"},
    {"FilePermutationAlone", "fill  = \"permutation\"", "fill  = { permutation = true }",
     "expected fill = \"permutation\""},
    {"FillMisspelt", "{ csr_offsets = \"EDGES\" }", "{ csr_ofsets = \"EDGES\" }", "did you mean csr_offsets?"},
    {"FillAndRange", "fill  = \"permutation\"", "fill  = \"permutation\"\nrange = [0, 9]",
     "the fill states what the tensor holds", 1},
    {"FillNormalOfIntegers", "fill  = \"permutation\"", "fill  = \"normal\"\nrange = [0, 9]", "normal is for floats"},
    {"FillTooLargeForItsType", "{ sorted = [0, 15] }", "{ sorted = [0, 256] }", "which the tensor's type can't hold",
     -4},
    {"FillCountsTooFar", "type  = \"u32\"", "type  = \"u8\"", "it counts to 999, which u8 can't hold exactly", -2},
    {"FillNotWhole", "{ integers = [0, \"NODES - 1\"] }", "{ integers = [0, \"NODES / 3\"] }",
     "expected a whole number"},
    {"FillOffsetsOfFloats", "type  = \"i32\"\nshape = [\"NODES + 1\"]", "type  = \"f32\"\nshape = [\"NODES + 1\"]",
     "csr_offsets are integers", 2},
    {"FillFileMissing", "table.npy", "tabel.npy", "file: the file tabel.npy can't be read"},
    {"FillFileType", "type  = \"f32\"\nshape = [16, 4]", "type  = \"f16\"\nshape = [16, 4]",
     "table.npy: its elements are <f4; expected f16", -2},
    {"FillFileShape", "shape = [16, 4]", "shape = [16, 5]", "table.npy: its shape is [16, 4]; expected [16, 5]", -3},
    {"FillFileRows", "shape = [16, 4]", "shape = [17, 4]", "table.npy: its shape is [16, 4]; expected [17, 4]", -3},
    {"RangeOfIntegersMissing", "fill  = { integers = [0, \"NODES - 1\"] }", "range = [0]",
     "range has 1 entries; expected the lowest and the highest value"},
    {"StaticOutput", "type  = \"i32\"\nshape = [1]\n", "type  = \"i32\"\nshape = [1]\nstatic = true\n",
     "static is for inputs and scratch", 2},
    {"StaticShapeUsesVariable", "shape = [4, 16]", "shape = [4, \"16 * UNROLL\"]", "UNROLL is a variable"},
    {"PackedOdd", "type  = \"u8\"\nshape = [\"NODES\"]", "type  = \"u4\"\nshape = [\"NODES + 1\"]",
     "expected an even one: two elements share a byte", -2},
    {"WordStart", "start  = \"float\"", "start  = \"half\"",
     "start is \"half\", which is not among values; expected one of "
     "float, double"},
    {"WordTwice", "values = [\"float\", \"double\"]", "values = [\"float\", \"double\", \"float\"]",
     "values has \"float\" twice"},
    {"WordWithBlank", "values = [\"float\", \"double\"]", "values = [\"float\", \"long double\"]",
     "values has \"long double\"; expected a number without quotes, or a word"},
    {"WordThatIsANumber", "values = [\"float\", \"double\"]", "values = [\"float\", \"2\"]", "a number without quotes"},
    {"WordsAndNumbers", "values = [\"float\", \"double\"]", "values = [\"float\", 2]",
     "values has \"float\" and 2; expected whole numbers only"},
    {"WordUnknown", "ACC == \"float\"", "ACC == \"flaot\"",
     "is not a value of ACC; expected float, double; did you mean"},
    {"WordOfNumbers", "ACC == \"float\"", "UNROLL == \"float\"", "must be compared with a variable whose values are"},
    {"FlagOptionWithNumbers", "option = \"--use_fast_math\"\nstart  = false",
     "option = \"--use_fast_math\"\nstart  = 0\nvalues = [0, 1]", "has no {}; expected one where the value goes"},
    {"ArchitectureOfAVariable", "option = \"--use_fast_math\"", "option = \"-arch=sm_70\"",
     "the GPU of the worker decides"},
    {"FlagWithoutStart", "option = \"--use_fast_math\"\nstart  = false\n",
     "option = \"--use_fast_math\"\nvalues = [false, true]\n", "the key start is missing", -2},
    {"ScalarTooLarge", "value = \"1 / 2 ^ 3\"", "value = \"2 ^ 17\"", "too large for f16", 20},
    {"StructField", "\"weight\", \"edges\"]", "\"weight\", \"edge\"]", "field edge is neither a tensor nor a scalar"},
    {"EntryBrackets", "steps::advance<ACC, UNROLL, STAGED>", "steps::advance<ACC, UNROLL, STAGED",
     "can't be a function"},
    {"EntryEndsItsName", "steps::advance<ACC, UNROLL, STAGED>", "steps::advance<ACC>; int x<1>", "can't be a function"},
    {"RepeatNegative", "repeat    = \"STEPS\"", "repeat    = \"0 - STEPS\"", "expected a whole number of 0 or more"},
    {"IndexTaken", "\"damping\", \"step\"]\nrepeat    = \"STEPS\"\nindex     = \"step\"",
     "\"damping\", \"state\"]\nrepeat    = \"STEPS\"\nindex     = \"state\"",
     "index: the name state is taken by the tensor", 2},
    {"SwapInput", "swap      = [\"state\", \"next\"]", "swap      = [\"state\", \"weight\"]",
     "swap: weight is an input"},
    {"SwapOfOne", "swap      = [\"state\", \"next\"]", "swap      = [\"state\"]", "expected two different tensors"},
    {"SwapOfShapes", "swap      = [\"state\", \"next\"]", "swap      = [\"state\", \"visits\"]",
     "must be two tensors of the same type and shape", -8},
    {"LoopName", "cooperative = true", "loop = \"a b\"\ncooperative = true", "loop \"a b\" can't be a name"},
    {"ClusterOfFour", "cluster   = [2]", "cluster   = [1, 1, 1, 1]", "cluster has 4 entries; expected one to three"},
    {"SetupSeesStaticOnly", "arguments = [\"table\", \"by_column\"]",
     "arguments = [\"table\", \"by_column\", \"weight\"]", "the tensor weight is not static"},
    {"SetupUsesVariable", "block     = [64]", "block     = [\"64 * UNROLL\"]", "UNROLL is a variable"},
    {"SetupEntryUsesVariable", "entry     = \"transpose_table\"", "entry     = \"transpose<UNROLL>\"",
     "UNROLL is a variable"},
    {"ToleranceMissing", "tolerance = { absolute = 1e-4, relative = 1e-5 }\n", "",
     "the table [tolerance] is missing; expected it, or tolerance or exact for every output", -32},
};

INSTANTIATE_TEST_SUITE_P(Graph, GraphMistakeTest, ::testing::ValuesIn(kGraphMistakes),
                         [](const auto& info) { return info.param.name; });

// Of the bundle that has stated files, a loop, symbols and a reference with files.
const Mistake kClubMistakes[] = {
    {"FileOfTwoKinds", "csr_offsets = \"EDGES\" }", "csr_offsets = \"EDGES\", sorted = [0, 9] }",
     "expected one of them beside file"},
    {"FileAndUniform", "file = \"columns.npy\", integers", "file = \"columns.npy\", uniform",
     "expected one of them beside file"},
    {"FilePermutationFalse", "permutation = true", "permutation = false", "permutation is true, or it is left out"},
    {"FileAndRange", "permutation = true }", "permutation = true }\nrange = [0, 9]",
     "the fill states what the tensor holds", 1},
    {"FileOffsetsEnd", "csr_offsets = \"EDGES\"", "csr_offsets = \"EDGES + 1\"",
     "offsets.npy: element 34, the last, is 156; CSR offsets end with the number of non-zeros, 157 (size club)", -4},
    {"FileOffsetsRange", "csr_offsets = \"EDGES\"", "csr_offsets = \"EDGES - 1\"",
     "offsets.npy: element 34 is 156; the range is 0 to 155", -4},
    {"FileNotSorted", "permutation = true", "sorted = [0, 33]",
     "order.npy: it falls from 33 to 0 at element 1: sorted data must not fall", -4},
    {"FileNoPermutation", "{ file = \"order.npy\", permutation = true }",
     "{ file = \"columns.npy\", permutation = true }",
     "columns.npy: element 17 is 2 as element 1 is; expected a permutation of 0 to 33", -4},
    {"LoopWithoutRepeat", "repeat    = \"STEPS\"\nindex", "index", "the loop step has no repeat", -1},
    {"LoopRepeatsTwice", "loop      = \"step\"\nentry     = \"damp\"",
     "loop      = \"step\"\nentry     = \"damp\"\nrepeat    = 2", "repeat of the loop step stands in its first", 2},
    {"LoopEnded", "[[symbol]] ",
     "[[launch]]\nentry = \"damp\"\ngrid = [1]\nblock = [32]\narguments = [\"next\", \"NODES\", \"NODES\"]\n"
     "[[launch]]\nloop = \"step\"\nentry = \"damp\"\ngrid = [1]\nblock = [32]\n"
     "arguments = [\"next\", \"NODES\", \"NODES\"]\n[[symbol]] ",
     "the loop step has ended", 6},
    {"SymbolName", "name   = \"club::weights\"", "name   = \"club weights\"", "can't be a variable"},
    {"SymbolTensor", "tensor = \"weights\"\n\n[reference]", "tensor = \"weight\"\n\n[reference]",
     "there is no tensor weight"},
    {"SymbolNotStatic", "static = true", "static = false", "the tensor weights is not static", 25},
    {"SymbolOfOutput", "tensor = \"weights\"\n\n[reference]", "tensor = \"state\"\n\n[reference]",
     "the tensor state is not an input"},
    {"ReferenceFilesNone", "reference/*.cuh", "reference/*.h", "files: no file is like reference/*.h"},
};

INSTANTIATE_TEST_SUITE_P(Club, ClubMistakeTest, ::testing::ValuesIn(kClubMistakes),
                         [](const auto& info) { return info.param.name; });

TEST(MistakesTest, WantsAProblemThatReadsData) {
  BundleFolder folder("club_steps");
  folder.Replace("source  = \"club.cu\"", "source  = \"club.cu\"\ndata = [\"*.npy\"]");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_EQ(reading.problems.size(), 1u);
  EXPECT_EQ(reading.problems[0].line, 3);
  EXPECT_EQ(reading.problems[0].message, "data is what problem.py reads, and there is no problem");
}

TEST(MistakesTest, NamesTheOffsetThatFalls) {
  BundleFolder folder("club_steps");
  folder.Replace("fill  = { file = \"offsets.npy\", csr_offsets = \"EDGES\" }",
                 "fill  = { file = \"off.bin\", csr_offsets = \"EDGES\" }");
  std::vector<int32_t> offsets(35, 156);
  offsets[0] = 0, offsets[1] = 7, offsets[2] = 3;
  folder.Write("off.bin", std::string(reinterpret_cast<const char*>(offsets.data()), 4 * offsets.size()));
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_EQ(reading.problems.size(), 1u);
  EXPECT_EQ(reading.problems[0].message,
            "tensor offsets: off.bin: it falls from 7 to 3 at element 2: CSR offsets must not fall (size club)");
}

// A bundle with a tensor w of raw bytes, at the sizes tiny (N = 8, K = 2) and main (N = 64, K = 4).
BundleReading ReadWithRaw(const std::string& shape, size_t bytes) {
  BundleFolder folder;
  folder.Write("kernel.toml",
               "name = \"raw\"\nsource = \"k.cu\"\nproblem = \"problem.py\"\n"
               "[goal]\nsize = \"main\"\nspeedup = 1.1\n"
               "[[size]]\nname = \"tiny\"\nN = 8\nK = 2\n[[size]]\nname = \"main\"\nN = 64\nK = 4\n"
               "[[tensor]]\nname = \"w\"\ntype = \"f32\"\nshape = " +
                   shape +
                   "\nfill = { file = \"w.bin\" }\n"
                   "[[tensor]]\nname = \"x\"\ntype = \"f32\"\nshape = [\"N\"]\nrole = \"output\"\n"
                   "[[launch]]\nentry = \"k\"\ngrid = [\"N\"]\nblock = [\"K\"]\narguments = [\"w\", \"x\"]\n"
                   "[tolerance]\nabsolute = 1e-4\nrelative = 1e-4\n");
  folder.Write("k.cu", "extern \"C\" __global__ void k(const float* w, float* x) { x[0] = w[0]; }\n");
  folder.Write("problem.py", "def reference(inputs, sizes):\n  return {}\n");
  folder.Write("w.bin", std::string(bytes, '\0'));
  return ReadBundle(folder.path());
}

TEST(MistakesTest, TakesTheFirstRowsOfRawData) {
  const auto found = [](const std::string& shape, size_t bytes) {
    const BundleReading reading = ReadWithRaw(shape, bytes);
    std::string text;
    for (const Problem& problem : reading.problems) text += "problem: " + FormatProblem(problem);
    for (const Problem& warning : reading.warnings) text += "warning: " + FormatProblem(warning);
    return text;
  };
  EXPECT_EQ(found("[\"N\"]", 256), "");
  EXPECT_EQ(found("[\"N\", 3]", 768), "");
  EXPECT_EQ(found("[3]", 12), "") << "one size uses it";
  EXPECT_THAT(found("[\"N\"]", 260),
              AllOf(StartsWith("warning: "), HasSubstr("[[tensor]] w: fill: w.bin has 260 bytes, and f32 [64] at size "
                                                       "main, the largest, takes 256: the rest is not used")));
  EXPECT_THAT(found("[\"N\", 3]", 770),
              AllOf(StartsWith("problem: "), HasSubstr("takes 768: expected that, or further whole rows of 12 bytes")));
  EXPECT_THAT(found("[\"N\"]", 252), HasSubstr("w.bin: it has 252 bytes of data; expected 256"));
}

TEST(MistakesTest, RefusesRawDataWhoseRowsDiffer) {
  for (const char* shape : {"[3, \"N\"]", "[\"N\", \"K\"]", "[\"N\", \"2 * K\"]"}) {
    const BundleReading reading = ReadWithRaw(shape, 4096);
    ASSERT_EQ(reading.problems.size(), 1u) << shape;
    EXPECT_THAT(reading.problems[0].message,
                AllOf(HasSubstr("w.bin is raw bytes, and its rows are ["), HasSubstr("] at size tiny"),
                      HasSubstr("its elements would mean something else at each size")));
  }
}

TEST(MistakesTest, TellsAnIntegerInputWithoutARangeWhatToWrite) {
  BundleFolder folder;
  folder.Replace("type  = \"i32\"\nshape = [\"ROWS\"]\nrange = [0, \"COLS - 1\"]",
                 "type = \"i64\"\nshape = [\"ROWS\"]");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_EQ(reading.problems.size(), 1u);
  EXPECT_THAT(reading.problems[0].message,
              HasSubstr("an i64 input must say what it may hold, such as range = [0, 1023] or fill = { integers = [0, "
                        "\"COLS - 1\"] }"));
}

TEST(MistakesTest, RefusesMoreLaunchesThanACallMayHave) {
  BundleFolder folder("graph_steps");
  folder.Replace("STEPS = 32", "STEPS = 10000");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_EQ(reading.problems.size(), 1u);
  EXPECT_THAT(reading.problems[0].message,
              HasSubstr("launch count_visits at size large: a call has more than 10000 launches, repetitions counted"));
}

TEST(MistakesTest, NamesAFileThatIsNoText) {
  BundleFolder folder("graph_steps");
  folder.Write("include/bad.cuh", "ok\n\xff\n");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_EQ(reading.problems.size(), 1u);
  EXPECT_THAT(
      reading.problems[0].message,
      HasSubstr("files: line 2 of include/bad.cuh is not UTF-8 text; files that problem.py reads are named by data"));
}

TEST(MistakesTest, NamesAValueOfAFileThatIsOutsideOfTheRange) {
  BundleFolder folder("graph_steps");
  folder.Replace("fill  = { file = \"table.npy\" }", "fill  = { file = \"table.npy\" }\nrange = [0, 1]");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_EQ(reading.problems.size(), 1u);
  EXPECT_THAT(reading.problems[0].message, HasSubstr("table.npy: element 0 is -0.375; the range is 0 to 1"));
}

TEST(MistakesTest, ReportsEveryMistakeAtOnce) {
  BundleFolder folder;
  folder.Write("reference.cu", "");
  const int top = folder.Replace("summary ", "sumary ");
  const int goal = folder.Replace("size    = \"main\"", "size    = \"mian\"");
  const int type = folder.Replace("type  = \"f16\"", "type  = \"f17\"");
  const int start = folder.Replace("start   = 1\n", "start   = \"1\"\n");
  const int grid = folder.Replace("\"ROWS / (SPLITS - 1)\"", "\"ROWZ\"");
  const int argument = folder.Replace("arguments = [\"partial\", \"out\"]", "arguments = [\"nothing\", \"out\"]");
  const int reference = folder.Replace("source = \"reference.cu\"", "source = \"reference.cu\"");
  const int tolerance = folder.Replace("relative = 0.001", "relative = 2");
  std::vector<int> lines;
  for (const Problem& problem : ReadBundle(folder.path()).problems) lines.push_back(problem.line);
  EXPECT_THAT(lines, ::testing::ElementsAre(top, goal, type, start, grid, argument, reference, tolerance));
}

TEST(MistakesTest, SaysWhenNothingIsAllowed) {
  BundleFolder folder;
  const int line = folder.Replace("that = \"SPLITS == 1 || TILE <= 64\"", "that = \"SPLITS > 9\"");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_EQ(reading.problems.size(), 2u);
  EXPECT_EQ(reading.problems[1].line, line);
  EXPECT_THAT(reading.problems[1].message, HasSubstr("forbid every variant"));
}

TEST(MistakesTest, NamesMissingTables) {
  BundleFolder folder;
  folder.Write("kernel.toml", "name = \"x\"\nsource = \"scale_rows.cu\"\n");
  std::string all;
  for (const Problem& problem : ReadBundle(folder.path()).problems) all += FormatProblem(problem) + "\n";
  for (const char* table : {"[goal]", "[[size]]", "[[tensor]]", "[[launch]]", "[reference]", "[tolerance]"}) {
    EXPECT_THAT(all, HasSubstr(table));
  }
}

TEST(MistakesTest, WantsAnOutput) {
  BundleFolder folder;
  folder.Replace("role  = \"output\"\ntolerance = { absolute = 0.01, relative = 0.0005 }\n", "");
  folder.Replace("role  = \"output\"\nexact = true", "range = [0, 1]");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_EQ(reading.problems.size(), 1u);
  EXPECT_THAT(reading.problems[0].message, HasSubstr("no [[tensor]] has role = \"output\""));
}

TEST(MistakesTest, WantsEveryOutputToBeWritten) {
  BundleFolder folder;
  const int line = folder.Replace("\"in\", \"out\", \"COLS\", \"factor\",", "\"in\", \"COLS\", \"factor\",") - 4;
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_EQ(reading.problems.size(), 1u);
  EXPECT_EQ(reading.problems[0].line, line);
  EXPECT_THAT(reading.problems[0].message, HasSubstr("no [[reference.launch]] has the output out as argument"));
}

TEST(MistakesTest, RefusesASpaceThatCanNotBeListed) {
  BundleFolder folder;
  std::string values = "values = [1";
  for (int i = 2; i <= 900; ++i) values += ", " + std::to_string(i);
  const int line =
      folder.Replace("[[scalar]]", "[[variable]]\nname = \"X\"\nstart = 1\n" + values +
                                       "]\n[[variable]]\nname = \"Y\"\nstart = 1\n" + values + "]\n[[scalar]]");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_EQ(reading.problems.size(), 1u);
  EXPECT_LT(reading.problems[0].line, line);
  EXPECT_THAT(reading.problems[0].message, HasSubstr("more than 10000000 variants"));
}

}  // namespace
}  // namespace pawl

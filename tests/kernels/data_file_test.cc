#include "kernels/data_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

v1::PlanTensor TensorOf(v1::DataType type, const std::vector<int64_t>& shape) {
  v1::PlanTensor tensor;
  tensor.set_name("w");
  tensor.set_type(type);
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    tensor.add_shape(extent);
    elements *= extent;
  }
  tensor.set_elements(elements);
  return tensor;
}

v1::DataFile File(const std::string& path, const std::string& data) {
  v1::DataFile file;
  file.set_path(path);
  file.set_data(data);
  return file;
}

// As numpy.save writes it.
v1::DataFile Npy(const std::string& type, const std::string& shape, const std::string& data,
                 const std::string& order = "False") {
  std::string header = absl::StrCat("{'descr': '", type, "', 'fortran_order': ", order, ", 'shape': ", shape, ", }\n");
  const char length[] = {static_cast<char>(header.size()), 0};
  return File("w.npy", std::string("\x93NUMPY\x01\x00", 8) + std::string(length, 2) + header + data);
}

v1::DataFile Safetensors(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size() & 0xff);
  bytes[1] = static_cast<char>(header.size() >> 8);
  return File("w.safetensors", bytes + header + data);
}

std::string Complaint(const v1::DataFile& file, const v1::PlanTensor& tensor) {
  return std::string(DataOf(file, tensor).status().message());
}

TEST(DataFileTest, ReadsNumpysFiles) {
  const v1::PlanTensor tensor = TensorOf(v1::DATA_TYPE_U16, {2, 2});
  EXPECT_EQ(*DataOf(Npy("<u2", "(2, 2)", "aabbccdd"), tensor), "aabbccdd");
  EXPECT_EQ(*DataOf(Npy("<u2", "(3, 2)", "aabbccddeeff"), tensor), "aabbccdd") << "the first rows";
  EXPECT_EQ(*DataOf(Npy("<i8", "(1,)", "12345678"), TensorOf(v1::DATA_TYPE_I64, {1})), "12345678");
  EXPECT_EQ(*DataOf(Npy("<u2", "(2, 2)", "aabbccdd"), TensorOf(v1::DATA_TYPE_BF16, {2, 2})), "aabbccdd");
  EXPECT_EQ(*DataOf(Npy("|u1", "(2, 2)", "abcd"), TensorOf(v1::DATA_TYPE_U4, {2, 4})), "abcd");
}

TEST(DataFileTest, SaysWhatIsWrongWithNumpysFiles) {
  const v1::PlanTensor tensor = TensorOf(v1::DATA_TYPE_U16, {2, 2});
  EXPECT_EQ(Complaint(Npy("<f4", "(2, 2)", ""), tensor), "w.npy: its elements are <f4; expected u16");
  EXPECT_THAT(Complaint(Npy(">u2", "(2, 2)", ""), tensor), HasSubstr("its elements are >u2"));
  EXPECT_EQ(Complaint(Npy("<u2", "(2, 3)", ""), tensor),
            "w.npy: its shape is [2, 3]; expected [2, 2], or more rows than that");
  EXPECT_THAT(Complaint(Npy("<u2", "(4,)", ""), tensor), HasSubstr("its shape is [4]"));
  EXPECT_THAT(Complaint(Npy("<u2", "(2, 2)", "aabb"), tensor), HasSubstr("it has 4 bytes of data; expected 8"));
  EXPECT_THAT(Complaint(Npy("<u2", "(2, 2)", "aabbccdd", "True"), tensor), HasSubstr("Fortran"));
  EXPECT_THAT(Complaint(File("w.npy", "not numpy at all"), tensor), HasSubstr("not an .npy file"));
  EXPECT_THAT(Complaint(File("w.npy", std::string("\x93NUMPY\x01\x00\xff\x7f{}", 12)), tensor), HasSubstr("cut off"));
}

TEST(DataFileTest, ReadsSafetensors) {
  const std::string one = R"({"__metadata__":{"a":"b"},"x":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})";
  EXPECT_EQ(*DataOf(Safetensors(one, "abcd"), TensorOf(v1::DATA_TYPE_F16, {2})), "abcd") << "the only one";
  const std::string two =
      R"({"v":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"w":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})";
  EXPECT_EQ(*DataOf(Safetensors(two, "abcd"), TensorOf(v1::DATA_TYPE_U8, {2})), "cd") << "by its name";
  v1::PlanTensor other = TensorOf(v1::DATA_TYPE_U8, {2});
  other.set_name("u");
  EXPECT_THAT(Complaint(Safetensors(two, "abcd"), other), HasSubstr("it has no tensor u; it has v, w"));
  EXPECT_THAT(Complaint(Safetensors(one, "ab"), TensorOf(v1::DATA_TYPE_F16, {2})), HasSubstr("cut off"));
  EXPECT_THAT(Complaint(Safetensors(one, "abcd"), TensorOf(v1::DATA_TYPE_BF16, {2})),
              HasSubstr("its elements are F16; expected bf16"));
}

TEST(DataFileTest, SurvivesBrokenSafetensors) {
  const v1::PlanTensor tensor = TensorOf(v1::DATA_TYPE_U8, {2});
  for (const char* header :
       {"", "[]", "{", "7", "{}", R"({"w":7})", R"({"w":{}})", R"({"w":{"dtype":1,"shape":[2],"data_offsets":[0,2]}})",
        R"({"w":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})",
        R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}})",
        R"({"w":{"dtype":"U8","shape":[2],"data_offsets":["a",2]}})",
        R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,99]}})",
        R"({"w":{"dtype":"U8","shape":[1e30],"data_offsets":[0,2]}})"}) {
    EXPECT_FALSE(DataOf(Safetensors(header, "ab"), tensor).ok()) << header;
  }
  EXPECT_FALSE(DataOf(File("w.safetensors", "abc"), tensor).ok());
  EXPECT_FALSE(DataOf(File("w.safetensors", std::string(8, '\xff')), tensor).ok());
}

TEST(DataFileTest, TakesRawBytesAsTheyAre) {
  EXPECT_EQ(*DataOf(File("w.bin", "abcdef"), TensorOf(v1::DATA_TYPE_U16, {2})), "abcd");
  EXPECT_THAT(Complaint(File("w.bin", "abc"), TensorOf(v1::DATA_TYPE_U16, {2})), HasSubstr("3 bytes of data"));
}

TEST(DataFileTest, FindsValuesOutsideOfTheRange) {
  v1::PlanTensor tensor = TensorOf(v1::DATA_TYPE_I8, {4});
  const v1::DataFile file = File("w.bin", std::string("\x00\x05\xff\x07", 4));
  EXPECT_TRUE(CheckDataValues(file, tensor, file.data()).ok()) << "it states none";
  tensor.set_low(-1);
  tensor.set_high(7);
  EXPECT_TRUE(CheckDataValues(file, tensor, file.data()).ok());
  tensor.set_low(0);
  EXPECT_EQ(CheckDataValues(file, tensor, file.data()).message(), "w.bin: element 2 is -1; the range is 0 to 7");
  v1::PlanTensor packed = TensorOf(v1::DATA_TYPE_I4, {2});
  packed.set_low(-1);
  packed.set_high(7);
  const v1::DataFile nibbles = File("w.bin", "\x8f");
  EXPECT_EQ(CheckDataValues(nibbles, packed, nibbles.data()).message(), "w.bin: element 1 is -8; the range is -1 to 7");
}

}  // namespace
}  // namespace pawl

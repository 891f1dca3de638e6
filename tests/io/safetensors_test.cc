#include "attend/io/safetensors.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tests/io/support.h"

namespace attend {
namespace {

/// A file as another program might write it: any header, any data.
std::string raw_file(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
}

NamedTensors some_tensors() {
  const Tensor narrow({3}, DType::kBFloat16);
  narrow.assign({1, -2, 0.5F});
  return {{"z", Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3})},
          {"a", narrow},
          {"scalar", Tensor::from({7}, {})},
          {"none", Tensor({0, 4}, DType::kFloat32)}};
}

class SafetensorsTest : public testing::Test {
 protected:
  std::string refused(const std::string& bytes) const {
    put(path_, bytes);
    const std::string message = message_of([&] { SafetensorsFile::open(path_); });
    EXPECT_TRUE(message.find(path_.string()) != std::string::npos) << message;
    return message;
  }
  /// The message for one float32 tensor described by `fields`, with 8 bytes of data.
  std::string refused_tensor(const std::string& fields) const {
    return refused(raw_file("{\"weight\":{" + fields + "}}", std::string(8, '\0')));
  }

  TemporaryFolder folder_;
  Path path_ = folder_ / "file.safetensors";
};

TEST_F(SafetensorsTest, GoesBothWays) {
  write_safetensors(path_, some_tensors(), {{"key", "a \"value\"\n"}});
  const SafetensorsFile file = SafetensorsFile::open(path_);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "none", "scalar", "z"}));
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"key", "a \"value\"\n"}}));
  EXPECT_EQ(file.shape("z"), (Shape{2, 3}));
  EXPECT_EQ(file.dtype("a"), "BF16");
  EXPECT_EQ(file.read("a").dtype(), DType::kBFloat16);
  for (const auto& [name, tensor] : some_tensors()) {
    EXPECT_EQ(file.read(name).to_vector(), tensor.to_vector()) << name;
    EXPECT_EQ(file.read(name).shape(), tensor.shape()) << name;
  }
  EXPECT_EQ(file.file_bytes(), static_cast<int64_t>(std::filesystem::file_size(path_)));
  EXPECT_NO_THROW(file.verify());
}

TEST_F(SafetensorsTest, IntegersGoBothWaysBesideTensors) {
  const std::vector<int32_t> numbers = {-1, 0, 2'000'000'000};
  write_safetensors(path_, some_tensors(), {}, {{"ids", numbers}, {"empty", {}}});
  const SafetensorsFile file = SafetensorsFile::open(path_);
  EXPECT_EQ(file.dtype("ids"), "I32");
  EXPECT_EQ(file.shape("ids"), Shape{3});
  EXPECT_EQ(file.read_integers("ids"), numbers);
  EXPECT_TRUE(file.read_integers("empty").empty());
  EXPECT_EQ(file.read("z").to_vector(), some_tensors().front().second.to_vector());
  EXPECT_NO_THROW(file.verify());
  expect_contains(message_of([&] { file.read("ids"); }), "holds I32");
  expect_contains(message_of([&] { file.read_integers("z"); }), "expected I32");
  EXPECT_THROW(write_safetensors(path_, some_tensors(), {}, {{"z", numbers}}), Error);
}

TEST_F(SafetensorsTest, StaysOpenWhenReplaced) {
  write_safetensors(path_, {{"x", Tensor::from({1}, {1})}});
  const SafetensorsFile file = SafetensorsFile::open(path_);
  write_safetensors(path_, {{"y", Tensor::from({2, 3}, {2})}});
  EXPECT_EQ(file.read("x").to_vector(), std::vector<float>{1});
}

TEST_F(SafetensorsTest, EqualTensorsMakeEqualBytes) {
  write_safetensors(path_, some_tensors(), {{"a", "1"}, {"b", "2"}});
  NamedTensors backwards = some_tensors();
  std::reverse(backwards.begin(), backwards.end());
  write_safetensors(folder_ / "other", backwards, {{"b", "2"}, {"a", "1"}});
  EXPECT_EQ(get(path_), get(folder_ / "other"));
}

TEST_F(SafetensorsTest, WritesWhatTheFormatSays) {
  write_safetensors(path_, some_tensors());
  const std::string bytes = get(path_);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  EXPECT_EQ((8 + length) % 64, 0U);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["z"]["dtype"], "F32");
  EXPECT_EQ(header["z"]["shape"], (std::vector<int64_t>{2, 3}));
  const auto range = header["z"]["data_offsets"].get<std::vector<std::size_t>>();
  EXPECT_EQ(range[1] - range[0], 24U);
  float third = 0;
  std::memcpy(&third, bytes.data() + 8 + length + range[0] + 8, sizeof(third));
  EXPECT_EQ(third, 3);
}

TEST_F(SafetensorsTest, WritesViews) {
  const Tensor whole = Tensor::from({0, 1, 2, 3, 4, 5}, {2, 3});
  write_safetensors(path_, {{"view", whole.slice_columns(1, 3)}});
  const SafetensorsFile file = SafetensorsFile::open(path_);
  EXPECT_EQ(file.read("view").to_vector(), (std::vector<float>{1, 2, 4, 5}));
  EXPECT_NO_THROW(file.verify());
}

TEST_F(SafetensorsTest, ReadsIntoTensorsOfEitherType) {
  write_safetensors(path_, some_tensors());
  const SafetensorsFile file = SafetensorsFile::open(path_);
  const Tensor wide({3}, DType::kFloat32);
  file.read_into("a", wide);
  EXPECT_EQ(wide.to_vector(), (std::vector<float>{1, -2, 0.5F}));
  const Tensor narrow({2, 3}, DType::kBFloat16);
  file.read_into("z", narrow);
  EXPECT_EQ(narrow.to_vector(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const Tensor same({2, 3}, DType::kFloat32);
  file.read_into("z", same);
  EXPECT_EQ(same.to_vector(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  expect_contains(message_of([&] { file.read_into("z", wide); }),
                  "tensor \"z\" has the shape [2, 3]; expected [3]");
  expect_contains(message_of([&] { file.read_into("y", wide); }), "there is no tensor \"y\"");
}

TEST_F(SafetensorsTest, ReadsFilesOfOtherPrograms) {
  // Spaces after the header, no metadata, float16 and float64, an unaligned tensor, other dtypes.
  const std::string header =
      R"({"half":{"dtype":"F16","shape":[6],"data_offsets":[1,13]},)"
      R"("byte":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
      R"("double":{"data_offsets":[13,21],"shape":[1,1],"dtype":"F64"}}    )";
  const uint16_t halves[] = {0x3C00, 0xC000, 0x7BFF, 0x0001, 0x8000, 0xFC00};
  const double number = 0.1;
  std::string data(21, '\0');
  std::memcpy(data.data() + 1, halves, sizeof(halves));
  std::memcpy(data.data() + 13, &number, sizeof(number));
  put(path_, raw_file(header, data));
  const SafetensorsFile file = SafetensorsFile::open(path_);
  const std::vector<float> half = file.read("half").to_vector();
  EXPECT_EQ(half, (std::vector<float>{1, -2, 65504, 0x1p-24F, 0, -INFINITY}));
  EXPECT_TRUE(std::signbit(half[4]));
  EXPECT_EQ(file.read("double").to_vector(), std::vector<float>{0.1F});
  expect_contains(message_of([&] { file.read("byte"); }), "tensor \"byte\" holds U8; expected");
  expect_contains(message_of([&] { file.verify(); }), "no attend_crc32");
}

TEST_F(SafetensorsTest, WriterRefusesWhatCannotBeRead) {
  const Tensor one = Tensor::from({1}, {1});
  expect_contains(message_of([&] { write_safetensors(path_, {{"a", one}, {"a", one}}); }), "twice");
  expect_contains(message_of([&] {
                    write_safetensors(path_, {{"a", Tensor()}});
                  }),
                  "\"a\" is empty");
  expect_contains(message_of([&] { write_safetensors(path_, {{"\xff", one}}); }), "UTF-8");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

using Contract19Safetensors = SafetensorsTest;

TEST_F(Contract19Safetensors, LengthOfTheHeader) {
  expect_contains(refused(""), "has 0 bytes");
  expect_contains(refused("1234567"), "has 7 bytes");
  expect_contains(refused(std::string(8, '\0')), "expected \"{\"");
  expect_contains(refused(std::string(8, '\xff')), "18446744073709551615 bytes, and at most");
  expect_contains(refused(std::string("\0\0\0\x05\0\0\0\0{}", 10)),
                  "ends at byte 83886088, but the file has 10 bytes: it was cut off");
  expect_contains(refused("a text file, not tensors"), "at most 100000000 are allowed");
}

TEST_F(Contract19Safetensors, Syntax) {
  expect_contains(refused(raw_file("{\"a\":", "")), "not valid JSON");
  expect_contains(refused(raw_file("{} {}", "")), "not valid JSON");
  expect_contains(refused(raw_file("[]", "")), "expected \"{\"");
  expect_contains(refused(raw_file("{\"a\":" + std::string(1'000'000, '['), "")),
                  "tensor \"a\" is a list; expected an object");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  expect_contains(refused(raw_file(deep, "")), "tensor \"a\" has the unknown field \"a\"");
  expect_contains(refused(raw_file("{\"\x1b[31m\":1}", "")), "not valid JSON");
  expect_contains(refused(raw_file("{\"\\u001b[31m\":1}", "")),
                  "tensor \"\\u001b[31m\" is a number");
  expect_contains(refused(raw_file(R"({"__metadata__":{"a":1}})", "")),
                  "__metadata__ holds a number at \"a\"; expected strings");
  expect_contains(refused(raw_file(R"({"__metadata__":{"a":{}}})", "")), "holds an object at");
  expect_contains(refused(raw_file(R"({"__metadata__":{"a":"","a":""}})", "")), "\"a\" twice");
  expect_contains(refused(raw_file(R"({"__metadata__":{},"__metadata__":{}})", "")), "there twice");
  expect_contains(refused(raw_file(R"({"__metadata__":"text"})", "")), "holds a string");
  put(path_, raw_file("{}", ""));
  EXPECT_TRUE(SafetensorsFile::open(path_).names().empty());
}

TEST_F(Contract19Safetensors, FieldsOfATensor) {
  const std::string dtype = R"("dtype":"F32")";
  const std::string shape = R"("shape":[2])";
  const std::string offsets = R"("data_offsets":[0,8])";
  put(path_, raw_file("{\"weight\":{" + dtype + "," + shape + "," + offsets + "}}", "12345678"));
  EXPECT_NO_THROW(SafetensorsFile::open(path_));

  const std::string named = "tensor \"weight\"";
  const auto refuse = [&](const std::string& fields, const std::string& problem) {
    const std::string message = refused_tensor(fields);
    expect_contains(message, named);
    expect_contains(message, problem);
  };
  refuse("", "has no field dtype");
  refuse(dtype + "," + shape, "has no field data_offsets");
  refuse(dtype + "," + offsets, "has no field shape");
  refuse(dtype + "," + dtype, "has the field dtype twice");
  refuse(dtype + "," + shape + "," + offsets + ",\"x\":1", "has the unknown field \"x\"");
  refuse(R"("dtype":"F31",)" + shape + "," + offsets, "unknown dtype \"F31\"");
  refuse(R"("dtype":4,)" + shape + "," + offsets, "dtype holds a number; expected a string");
  refuse(R"("dtype":["F32"])", "dtype holds a list; expected a string");
  refuse(dtype + R"(,"shape":2)", "shape holds a number; expected a list of whole numbers");
  refuse(dtype + R"(,"shape":[-2])", "shape holds a negative number");
  refuse(dtype + R"(,"shape":[2.0])", "shape holds a fraction");
  refuse(dtype + R"(,"shape":["2"])", "shape holds a string");
  refuse(dtype + R"(,"shape":[[2]])", "shape holds a list");
  refuse(dtype + R"(,"shape":[null])", "shape holds null");
  refuse(dtype + R"(,"shape":[true])", "shape holds a truth value");
  refuse(dtype + R"(,"shape":[9223372036854775808])", "more than 63 bits");
  refuse(dtype + R"(,"shape":[99999999999999999999999])", "shape holds a fraction");
  refuse(dtype + R"(,"shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1])", "more than 16 numbers");
  refuse(dtype + R"(,"shape":[3],)" + offsets,
         "F32 of shape [3] needs 12 bytes, but data_offsets gives it 8");
  refuse(dtype + R"(,"shape":[0],)" + offsets, "needs 0 bytes");
  refuse(dtype + R"(,"shape":[4294967296,4294967296],)" + offsets, "too many elements to count");
  refuse(dtype + R"(,"shape":[4611686018427387904,4,0],"data_offsets":[0,0])", "too many elements");
  refuse(dtype + R"(,"shape":[4611686018427387904],)" + offsets, "too many elements to count");
  refuse(dtype + "," + shape + R"(,"data_offsets":[8])", "data_offsets is [8]; expected a begin");
  refuse(dtype + "," + shape + R"(,"data_offsets":[8,0])", "data_offsets is [8, 0]; expected");
  refuse(dtype + "," + shape + R"(,"data_offsets":[4,12])",
         "ends at byte 12 of the data, of which");
  refuse(dtype + R"(,"shape":[1],"data_offsets":[4,8])", "they leave a hole");
  expect_contains(refused_tensor(dtype + R"(,"shape":[1],"data_offsets":[0,4])"),
                  "the tensors have 4 bytes of data, but the file has 8");
}

TEST_F(Contract19Safetensors, SeveralTensors) {
  const auto entry = [](const std::string& name, int begin, int end) {
    return fmt::format(R"("{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})", name,
                       (end - begin) / 4, begin, end);
  };
  const auto with = [](const std::vector<std::string>& entries) {
    return raw_file(fmt::format("{{{}}}", fmt::join(entries, ",")), std::string(16, '\0'));
  };
  expect_contains(
      refused(with({entry("a", 0, 8), entry("b", 4, 16)})),
      "tensor \"b\" begins at byte 4 of the data, but the one before it ends at 8: they overlap");
  expect_contains(refused(with({entry("a", 0, 16), entry("b", 0, 16)})), "overlap");
  expect_contains(refused(with({entry("a", 0, 8), entry("a", 8, 16)})), "\"a\" is there twice");
  std::vector<std::string> many = {entry("a", 0, 16)};
  for (int i = 0; i < 300'000; ++i) many.push_back(entry(fmt::format("{}", i), 16, 16));
  expect_contains(refused(with(many)), "more than 262144 tensors");
}

TEST_F(Contract19Safetensors, CorruptDataIsFound) {
  write_safetensors(path_, some_tensors());
  std::string bytes = get(path_);
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 4);  // of "a", the last
  put(path_, bytes);
  const SafetensorsFile file = SafetensorsFile::open(path_);
  EXPECT_NO_THROW(file.read("z"));
  const std::string message = message_of([&] { file.read("a"); });
  expect_contains(message, path_.string() + ": tensor \"a\" has the checksum ");
  EXPECT_EQ(message_of([&] { file.verify(); }), message);
  const Tensor destination({3}, DType::kFloat32);
  EXPECT_EQ(message_of([&] { file.read_into("a", destination); }), message);
}

TEST_F(Contract19Safetensors, CorruptChecksumsAreFound) {
  const std::string tensor = R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})";
  for (const char* sum : {"", "0", "0000000g", "000000000", "00000000 00000000", "+1234567"}) {
    expect_contains(
        refused(raw_file(fmt::format(R"({{"__metadata__":{{"attend_crc32":"{}"}},)", sum) + tensor,
                         "")),
        "expected 8 hexadecimal digits for each of 1 tensors");
  }
  put(path_, raw_file(R"({"__metadata__":{"attend_crc32":"00000000"},)" + tensor, ""));
  EXPECT_NO_THROW(SafetensorsFile::open(path_).verify());
}

/// Opens and reads all of it: success or Error.
bool readable(const Path& path) {
  try {
    const SafetensorsFile file = SafetensorsFile::open(path);
    for (const std::string& name : file.names()) file.read(name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST_F(Contract19Safetensors, EveryTruncationIsRefused) {
  write_safetensors(path_, some_tensors(), {{"key", "value"}});
  const std::string bytes = get(path_);
  ASSERT_TRUE(readable(path_));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    put(path_, bytes.substr(0, size));
    EXPECT_FALSE(readable(path_)) << size;
  }
}

TEST_F(Contract19Safetensors, MutatedFilesAreReadOrRefused) {
  write_safetensors(path_, some_tensors(), {{"key", "value"}});
  const std::string with_checksums = get(path_);
  // Without checksums, so that more mutations pass as valid.
  const std::string plain = raw_file(R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                                     R"("b":{"dtype":"F16","shape":[4],"data_offsets":[16,24]},)"
                                     R"("c":{"dtype":"F64","shape":[1],"data_offsets":[24,32]}})",
                                     std::string(32, '\x3f'));
  std::mt19937 random(19);
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    put(path_, mutated(round % 2 == 0 ? with_checksums : plain, random));
    read += readable(path_) ? 1 : 0;
  }
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 20000);
}

TEST(Contract17, ReadsBeyondFourGigabytes) {
  const TemporaryFolder folder;
  const Path path = folder / "large.safetensors";
  constexpr int64_t kLarge = int64_t{5} << 30;
  const std::string header =
      fmt::format(R"({{"large":{{"dtype":"F32","shape":[{},1024],"data_offsets":[0,{}]}},)"
                  R"("last":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}}}})",
                  kLarge / 4096, kLarge, kLarge, kLarge + 4);
  put(path, raw_file(header, ""));
  const int64_t end = static_cast<int64_t>(8 + header.size()) + kLarge;
  if (truncate(path.c_str(), end) != 0) GTEST_SKIP() << "no sparse file of 5 GiB here";
  const float number = 42;
  std::ofstream(path, std::ios::binary | std::ios::app)
      .write(reinterpret_cast<const char*>(&number), sizeof(number));
  const SafetensorsFile file = SafetensorsFile::open(path);
  EXPECT_EQ(file.at("large").bytes, kLarge);
  EXPECT_EQ(file.file_bytes(), end + 4);
  EXPECT_EQ(file.read("last").to_vector(), std::vector<float>{42});
}

}  // namespace
}  // namespace attend

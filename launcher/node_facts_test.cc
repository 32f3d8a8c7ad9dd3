#include "launcher/node_facts.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

// A folder of the test's own, empty.
fs::path FreshFolder(const std::string& name) {
  fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

TEST(NodeFacts, TheDriverIsReadFromItsLine) {
  EXPECT_EQ(
      DriverVersionIn("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 "
                      "01:15:15 UTC 2023\nGCC version:  gcc version 11.4.0\n"),
      "535.104.05");
  EXPECT_EQ(DriverVersionIn("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  "
                            "Release Build"),
            "550.54.15");
  EXPECT_EQ(DriverVersionIn(""), "");
  EXPECT_EQ(DriverVersionIn("GCC\n1.2.3"), "");
}

TEST(NodeFacts, CudaIsReadFromItsFileOrItsFolder) {
  const fs::path folder = FreshFolder("cuda_facts");
  fs::create_directories(folder / "cuda-12.4");
  fs::create_directory_symlink(folder / "cuda-12.4", folder / "cuda");
  EXPECT_EQ(CudaVersionIn(folder / "cuda"), "12.4");
  std::ofstream(folder / "cuda" / "version.json")
      << "{\"cuda\" : {\n \"name\" : \"CUDA SDK\",\n \"version\" : \"12.4.20240301\"\n }}";
  EXPECT_EQ(CudaVersionIn(folder / "cuda"), "12.4.20240301");
  std::ofstream(folder / "cuda" / "version.json") << "{\"cuda\": {\"version\": 3";
  EXPECT_EQ(CudaVersionIn(folder / "cuda"), "12.4") << "what isn't understood is passed over";
  EXPECT_EQ(CudaVersionIn(folder / "nowhere"), "");
}

TEST(NodeFacts, NcclIsReadFromTheNameOfItsLibrary) {
  const fs::path folder = FreshFolder("nccl_facts");
  fs::create_directories(folder / "one");
  fs::create_directories(folder / "two");
  std::ofstream(folder / "two" / "libnccl.so.2.21.5") << "x";
  fs::create_symlink("libnccl.so.2.21.5", folder / "two" / "libnccl.so.2");
  EXPECT_EQ(NcclVersionIn({folder / "one", "", folder / "two"}), "2.21.5");
  // The loader takes the first one that it finds, whether or not it tells its version.
  std::ofstream(folder / "one" / "libnccl.so.2") << "x";
  EXPECT_EQ(NcclVersionIn({folder / "one", folder / "two"}), "");
  EXPECT_EQ(NcclVersionIn({}), "");
}

TEST(NodeFacts, ThisNodeCanBeAsked) {
  const NodeFacts facts = LookUpNodeFacts();
  EXPECT_GE(facts.gpu_count, 0);
  if (facts.gpu_count == 0) {
    EXPECT_EQ(facts.driver_version + facts.cuda_version + facts.nccl_version, "");
  }
}

}  // namespace
}  // namespace muster::launcher

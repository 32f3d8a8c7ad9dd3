#include "launcher/processor_topology.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class TopologyTest : public testing::Test {
 protected:
  TopologyTest() : root_(testing::TempDir() + "/root_XXXXXX") {
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
  }
  ~TopologyTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  void AddProcessor(int number, const std::string& siblings, const std::string& socket) const {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(number);
    Write(folder + "/topology/thread_siblings_list", siblings + "\n");
    Write(folder + "/topology/physical_package_id", socket + "\n");
  }

  void AddCache(int number, int index, const std::string& type, int level,
                const std::string& shared) const {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(number) +
                               "/cache/index" + std::to_string(index);
    Write(folder + "/type", type + "\n");
    Write(folder + "/level", std::to_string(level) + "\n");
    Write(folder + "/shared_cpu_list", shared + "\n");
  }

  void AddGpu(const std::string& place, const std::string& uuid, int node) const {
    Write("/proc/driver/nvidia/gpus/" + place + "/information",
          "Model: \t\t x\nGPU UUID: \t " + uuid + "\nDevice Minor: \t 0\n");
    Write("/sys/bus/pci/devices/" + place + "/numa_node", std::to_string(node) + "\n");
  }

  std::string root_;
};

TEST(Ranges, AreSetsOfNumbers) {
  EXPECT_THAT(ParseRanges("0-2,4,6-7\n"), ElementsAre(0, 1, 2, 4, 6, 7));
  EXPECT_THAT(ParseRanges(""), IsEmpty());
  EXPECT_THAT(ParseRanges("x,3,5-,1-2-3,-4,7-6,0-99999"), ElementsAre(3));
}

TEST_F(TopologyTest, ReadsWhatTheKernelSays) {
  for (int i = 0; i < 4; ++i) {
    AddProcessor(i, i % 2 == 0 ? "0,2" : "1,3", i % 2 == 0 ? "0" : "1");
    AddCache(i, 0, "Data", 1, std::to_string(i));
    AddCache(i, 1, "Instruction", 9, "0-3");
    AddCache(i, 2, "Unified", 3, i % 2 == 0 ? "0,2" : "1,3");
  }
  Write("/sys/devices/system/node/node0/cpulist", "0,2\n");
  Write("/sys/devices/system/node/node10/cpulist", "1,3\n");
  Write("/sys/devices/system/node/possible", "0-10\n");
  ProcessorTopology topology = ReadTopology(root_, {1, 2, 3}, nullptr);
  ASSERT_EQ(topology.processors.size(), 3u);
  EXPECT_EQ(topology.processors[1], (Processor{.node = 10, .socket = 1, .core = 1, .cache = 1}));
  EXPECT_EQ(topology.processors[2], (Processor{.node = 0, .socket = 0, .core = 0, .cache = 0}));
  EXPECT_EQ(topology.processors[3], (Processor{.node = 10, .socket = 1, .core = 1, .cache = 1}));
  EXPECT_THAT(topology.gpu_nodes, IsEmpty());
}

TEST_F(TopologyTest, WithoutFilesEachProcessorStandsAlone) {
  ProcessorTopology topology = ReadTopology(root_, {5}, nullptr);
  EXPECT_EQ(topology.processors[5], (Processor{.node = 0, .socket = 0, .core = 5, .cache = 5}));
}

TEST_F(TopologyTest, ListsTheGpusThatWorkersSee) {
  AddGpu("0000:0f:00.0", "GPU-aaaa1111", 1);
  AddGpu("0000:17:00.0", "GPU-bbbb2222", -1);
  AddGpu("0001:03:00.0", "GPU-cccc3333", 2);
  EXPECT_THAT(ReadTopology(root_, {0}, nullptr).gpu_nodes, ElementsAre(1, 0, 2));
  EXPECT_THAT(ReadTopology(root_, {0}, "2, 0").gpu_nodes, ElementsAre(2, 1));
  EXPECT_THAT(ReadTopology(root_, {0}, "GPU-cccc,GPU-aaaa1111").gpu_nodes, ElementsAre(2, 1));
  EXPECT_THAT(ReadTopology(root_, {0}, "0,7,1").gpu_nodes, ElementsAre(1));
  EXPECT_THAT(ReadTopology(root_, {0}, "").gpu_nodes, IsEmpty());
}

}  // namespace
}  // namespace muster::launcher

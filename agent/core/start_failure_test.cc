#include "agent/core/start_failure.h"

#include <cerrno>

#include "agent/core/exit_code.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

TEST(StartFailure, TooManyArgumentsAreNamedWithTheRemedy) {
  StartFailure failure = ExplainStartFailure("python3", E2BIG, "");
  EXPECT_EQ(failure.exit_code, 126);
  EXPECT_NE(failure.message.find("Argument list too long; its arguments and environment"),
            std::string::npos);
  EXPECT_NE(failure.message.find("ulimit -s"), std::string::npos);
}

TEST(StartFailure, AProgramIsBlamedForWhatIsItsOwn) {
  EXPECT_EQ(ExplainStartFailure("/no/such", ENOENT, "").exit_code, kExitNotFound);
  EXPECT_EQ(ExplainStartFailure("/no/such", ENOENT, "").message,
            "'/no/such' can't be executed: No such file or directory");
  for (int error : {EACCES, ENOEXEC, ENOTDIR, ETXTBSY, E2BIG}) {
    EXPECT_EQ(ExplainStartFailure("a", error, "").exit_code, kExitNotExecutable) << error;
  }
}

TEST(StartFailure, AFlawOfTheProgramTakesThePlaceOfErrno) {
  EXPECT_EQ(ExplainStartFailure("./t.sh", ENOENT, "its interpreter is missing").message,
            "'./t.sh' can't be executed: its interpreter is missing");
}

TEST(StartFailure, AFileThatIsNoProgramIsSaidToBeNone) {
  EXPECT_EQ(ExplainStartFailure("./t", ENOEXEC, "").message,
            "'./t' can't be executed: Exec format error; it is no binary for this machine, and no "
            "script that begins with #! and its interpreter");
}

TEST(StartFailure, AShortageIsTheMachinesAndSaysWhatToDo) {
  for (int error : {EAGAIN, ENOMEM, EMFILE, ENFILE}) {
    EXPECT_EQ(ExplainStartFailure("a", error, "").exit_code, kExitOsError) << error;
  }
  EXPECT_EQ(ExplainStartFailure("train.py", EMFILE, "").message,
            "no process can be made for 'train.py': Too many open files; raise the limit of open "
            "files (`ulimit -n`, or fs.file-max)");
}

TEST(StartFailure, AStoreThatCannotBeServedNamesItsPortAndTheOtherWay) {
  StartFailure taken = ExplainStoreFailure(29512, EADDRINUSE);
  EXPECT_EQ(taken.exit_code, kExitOsError);
  EXPECT_EQ(taken.message,
            "PyTorch's store can't be served at port 29512: Address already in use; with "
            "--master-store=worker rank 0 hosts it itself");
  EXPECT_EQ(ExplainStoreFailure(0, EMFILE).message,
            "PyTorch's store can't be served: Too many open files; with --master-store=worker rank "
            "0 hosts it itself");
}

}  // namespace
}  // namespace muster::agent

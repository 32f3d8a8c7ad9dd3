// What mpirun's users type (Open MPI's and MPICH's) that `muster run` has under another name, or
// that needs nothing here. Those that it takes as they are stand in launcher/run_flags.h. A table;
// no behaviour.
#ifndef MUSTER_LAUNCHER_MPIRUN_OPTIONS_H_
#define MUSTER_LAUNCHER_MPIRUN_OPTIONS_H_

#include "launcher/command_line.h"

namespace muster::launcher {

inline constexpr ForeignFlag kMpirunOptions[] = {
    {"genv,env", "write -x NAME=VALUE, one for each variable"},
    {"genvlist,envlist", "write -x NAME, one for each variable"},
    {"genvall,envall,genvnone,envnone",
     "leave it out: PATH, PET_* and MUSTER_* are passed on to other hosts, and what -x names"},
    {"ppn,perhost,N,npernode",
     "write --nproc-per-node=N, or a number behind each host: --hosts=a:4,b:4"},
    {"f,default-hostfile", "write --hostfile=FILE"},
    {"map-by,rank-by",
     "leave it out: ranks fill the hosts in their order, as many on each as the number behind it "
     "says: --hosts=a:4,b:4"},
    {"oversubscribe,nooversubscribe",
     "leave it out: each host gets the workers that the number behind it says, however many cores "
     "it has"},
    {"allow-run-as-root", "leave it out: muster runs for root as for anybody"},
    {"mca,gmca,prtemca,pmixmca",
     "leave it out: there is no MPI underneath; pass settings on as variables, with -x NAME=VALUE"},
    {"launcher,launcher-exec", "leave it out: other hosts are reached by ssh, or by --ssh-command"},
    {"tag-output,prepend-rank,l",
     "leave it out: where there are several workers their lines have a prefix; --prefix=always "
     "makes it sure"},
    {"output-filename,outfile-pattern", "write --log-dir=DIR --redirects=3"},
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_MPIRUN_OPTIONS_H_

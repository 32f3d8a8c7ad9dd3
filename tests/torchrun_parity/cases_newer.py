"""The table, part 5: options that only newer launchers than 1.13 know."""
import signal

from parity_case import ENVIRONMENT, NOTES, Case

TWO = ("--nproc-per-node=2",)

CASES = (
    Case("local_addr", options=("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:{port}", "--local-addr=127.0.0.1",
                                *TWO), facts=(ENVIRONMENT,), since=(2, 0)),
    Case("event_log_handler", options=("--event-log-handler=null",), since=(2, 5)),
    Case("event_log_handler_console", options=("--event-log-handler=console",), since=(2, 5)),
    Case("numa_binding_nonsense", options=("--numa-binding=hope",), code=64, since=(2, 9)),
    Case("logs_specs_default", options=("--logs-specs=default",), since=(2, 3)),
    Case("signals_to_handle_usr1", options=("--signals-to-handle=SIGTERM,SIGUSR1", *TWO), facts=(NOTES,),
         program="leave_on(signal.SIGTERM, signal.SIGUSR1)\nhold()", code=138,
         strike=("launcher", signal.SIGUSR1), ready=2, since=(2, 9)),
    Case("shutdown_timeout", options=("--shutdown-timeout=1", *TWO), code=2, since=(2, 12),
         program="signal.signal(signal.SIGTERM, signal.SIG_IGN); mark('ready')\nall_up()\n"
                 "if RANK == 1: wait_mark('ready', 0); sys.exit(2)\nhold()"),
    Case("virtual_local_rank", options=("--virtual-local-rank", *TWO), facts=(ENVIRONMENT,), since=(2, 8)),
    Case("virtual_local_rank_of_given_devices", options=("--virtual-local-rank", *TWO), facts=(ENVIRONMENT,),
         environment=(("CUDA_VISIBLE_DEVICES", "5,7"),), since=(2, 8)),
    Case("pet_local_addr", environment=(("PET_LOCAL_ADDR", "127.0.0.1"), ("PET_RDZV_BACKEND", "c10d"),
                                        ("PET_RDZV_ENDPOINT", "127.0.0.1:{port}")), facts=(ENVIRONMENT,), since=(2, 0)),
)

"""Every Python of the fleet imports this when it starts: it ends with the process that started it.

vLLM runs an engine and a worker as processes of their own, and a killed server would leave them, with gigabytes of memory,
behind. The kernel's parent-death signal ends them however the server ends; a forked child has to ask for it anew.
"""

import os
import signal
import sys


def end_with_parent() -> None:
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)


# The resource tracker ends by itself, after it has removed what the others left in /dev/shm.
is_resource_tracker = any("multiprocessing.resource_tracker" in argument for argument in sys.orig_argv)

if sys.platform == "linux" and not is_resource_tracker:
    end_with_parent()
    os.register_at_fork(after_in_child=end_with_parent)

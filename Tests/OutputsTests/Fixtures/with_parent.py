"""What a server of the tests has in common with the others: it ends with the process that started it."""

import os
import select
import signal
import threading


def end_with_parent():
    """Kills this process when its parent has ended, even by SIGKILL.

    prctl(PR_SET_PDEATHSIG) would do so already when the thread ends that started it, and those that tests run on end when they are
    idle for some seconds.
    """
    parent = os.pidfd_open(os.getppid())

    def watch():
        select.select([parent], [], [])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()

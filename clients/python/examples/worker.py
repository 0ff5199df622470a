"""Does one step a second while it leads. Usage: worker.py [ADDRESS]"""

import signal
import sys
import time

from tenure import Agent

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with Agent(*sys.argv[1:]).campaign("billing") as campaign:
    for term in campaign.terms():
        print("leads", term.token, flush=True)
        while term.may_act(needs=1.0):
            time.sleep(1.0)  # a step, with the token
        print("has stopped", flush=True)

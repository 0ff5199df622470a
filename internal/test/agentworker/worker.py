"""Acts through the client for Python. As "hangs" or "leaves" it does so after its first act, or as
soon as it leads. As "misuses" it asks for a lease that cannot be held."""

import os
import struct
import sys
import time

client, address, name, journal, lease, mode = sys.argv[1:]
sys.path.insert(0, client)
from tenure import Agent, AgentError, Over  # noqa: E402

lease, pid = int(lease), os.getpid()
settings = {"id": name, "leaseMillis": lease, "heartbeatMillis": lease // 2}
if mode == "misuses":
    settings["leaseMillis"] = 1
acts = open(journal, "ab", buffering=0)
with Agent(address, timeout=60).campaign("billing", **settings) as campaign:
    print("up", flush=True)
    for term in campaign.terms():
        print("leads", term.token, flush=True)
        try:
            if mode == "leaves":
                campaign.hand_over()
                mode = "declines"
            elif mode == "declines":
                campaign.set_eligible(False)
                print("declines", flush=True)
        except (AgentError, Over):
            pass  # a busy machine has lost the term
        asked = False
        while True:
            before = time.monotonic_ns()
            if not (mode == "cached" and asked) and not term.may_act():
                break
            asked = True
            acts.write(struct.pack("<qQ4I", before, term.token, int(name[1:]), 2, pid, pid))
            if mode == "hangs":
                time.sleep(1e6)
            time.sleep(0.005)
        print("ended", term.token, flush=True)

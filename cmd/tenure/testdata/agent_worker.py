"""Acts while it leads, and writes each act into a journal: the time before it asked whether it may
act, and the token. Each mode but "asks" makes a mistake, or has a reason to give up. As "cached" it
asks once in each term."""

import sys
import time

client, socket, name, journal, mode = sys.argv[1:]
sys.path.insert(0, client)
from tenure import Agent, AgentError, Over  # noqa: E402

lease = 1 if mode == "misuses" else 3000
settings = {"id": name, "leaseMillis": lease, "heartbeatMillis": 1500}
acts = open(journal, "a", buffering=1)
with Agent("unix:" + socket, timeout=60).campaign("billing", **settings) as campaign:
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
            before = time.monotonic()
            if not (mode == "cached" and asked) and not term.may_act():
                break
            asked = True
            acts.write(f"{before} {term.token}\n")
            if mode == "hangs":
                time.sleep(1e6)
            time.sleep(0.005)
        print("ended", term.token, flush=True)

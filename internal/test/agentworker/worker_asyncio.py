"""Does the same as worker.py, with the client for asyncio. As "waits" it blocks itself, but not the
event loop. As "quits" it asks whether it may act while another task leaves the campaign."""

import asyncio
import os
import struct
import sys
import time

client, address, name, journal, lease, mode = sys.argv[1:]
sys.path.insert(0, client)
from tenure.aio import Agent, AgentError, Over  # noqa: E402

lease, pid = int(lease), os.getpid()


async def main(mode):
    settings = {"id": name, "leaseMillis": lease, "heartbeatMillis": lease // 2}
    if mode == "misuses":
        settings["leaseMillis"] = 1
    agent = Agent(address, timeout=60)
    async with agent.campaign("billing", **settings) as campaign:
        acts = open(journal, "ab", buffering=0)
        print("up", flush=True)
        async for term in campaign.terms():
            print("leads", term.token, flush=True)
            try:
                if mode == "leaves":
                    await campaign.hand_over()
                    mode = "declines"
                elif mode == "declines":
                    await campaign.set_eligible(False)
                    print("declines", flush=True)
                elif mode == "quits":
                    leaving = asyncio.ensure_future(campaign.leave())
                    await asyncio.sleep(0)  # the report is under way
                    print("may act:", await term.may_act(), flush=True)
                    await leaving
            except (AgentError, Over):
                pass  # a busy machine has lost the term
            while True:
                before = time.monotonic_ns()
                if not await term.may_act():
                    break
                acts.write(struct.pack("<qQ4I", before, term.token, int(name[1:]), 2, pid, pid))
                if mode == "hangs":
                    time.sleep(1e6)
                elif mode == "waits":
                    await asyncio.sleep(1e6)
                await asyncio.sleep(0.005)
            print("ended", term.token, flush=True)


asyncio.run(main(mode))

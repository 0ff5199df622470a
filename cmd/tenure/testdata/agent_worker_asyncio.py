"""Does the same as agent_worker.py, with the client for asyncio. As "waits" it blocks itself, but
not the event loop."""

import asyncio
import sys
import time

client, socket, name, journal, mode = sys.argv[1:]
sys.path.insert(0, client)
from tenure.aio import Agent, AgentError, Over  # noqa: E402


async def main(mode):
    lease = 1 if mode == "misuses" else 3000
    settings = {"id": name, "leaseMillis": lease, "heartbeatMillis": 1500}
    agent = Agent("unix:" + socket, timeout=60)
    async with agent.campaign("billing", **settings) as campaign:
        acts = open(journal, "a", buffering=1)
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
            except (AgentError, Over):
                pass  # a busy machine has lost the term
            while True:
                before = time.monotonic()
                if not await term.may_act():
                    break
                acts.write(f"{before} {term.token}\n")
                if mode == "hangs":
                    time.sleep(1e6)
                elif mode == "waits":
                    await asyncio.sleep(1e6)
                await asyncio.sleep(0.005)
            print("ended", term.token, flush=True)


asyncio.run(main(mode))

"""Does one step a second while it leads. Usage: worker_asyncio.py [ADDRESS]"""

import asyncio
import signal
import sys

from tenure.aio import Agent


async def work() -> None:
    async with Agent(*sys.argv[1:]).campaign("billing") as campaign:
        async for term in campaign.terms():
            print("leads", term.token, flush=True)
            while await term.may_act(needs=1.0):
                await asyncio.sleep(1.0)  # a step, with the token
            print("has stopped", flush=True)


async def main() -> None:
    task = asyncio.create_task(work())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        pass


asyncio.run(main())
